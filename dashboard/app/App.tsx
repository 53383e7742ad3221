import { QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { useMemo, useRef, type ReactNode } from "react";
import { ClientError } from "../../client";
import { Messages } from "../components/Messages";
import { SessionProvider, useSessions } from "../session/context";
import { SecretsProvider } from "../session/secrets";
import { SignIn } from "../screens/signIn/SignIn";
import { Screens } from "./router";

/** Refetching is cheap and safe; no query retries, since the SDK has already retried. */
const QUERY_DEFAULTS = { queries: { retry: false, staleTime: 5_000, refetchOnReconnect: true } } as const;

export function App(): ReactNode {
  const onError = useRef<(error: unknown) => void>(() => undefined);
  const queries = useMemo(
    () =>
      new QueryClient({
        defaultOptions: QUERY_DEFAULTS,
        queryCache: new QueryCache({ onError: (error) => onError.current(error) }),
      }),
    [],
  );
  return (
    <QueryClientProvider client={queries}>
      <Messages>
        <SessionProvider>
          <SecretsProvider>
            <SessionGuard onError={onError} />
          </SecretsProvider>
        </SessionProvider>
      </Messages>
    </QueryClientProvider>
  );
}

/** Ends the session, with the reason, when its key stops being valid. */
function SessionGuard({ onError }: { readonly onError: React.RefObject<(error: unknown) => void> }): ReactNode {
  const { session, end } = useSessions();
  onError.current = (error) => {
    if (session === undefined || !(error instanceof ClientError)) return;
    const why = END_REASONS[error.code];
    if (session.kind === "key" && why !== undefined) end(why);
  };
  return session === undefined ? <SignIn /> : <Screens key={`${session.kind}-${session.account.id}`} />;
}

const END_REASONS: Readonly<Record<string, string>> = {
  unknown_key: "This key has been revoked. You have been signed out.",
  key_expired: "This key has expired. You have been signed out.",
  account_chain_secured:
    "This account is ChainSecured now and its account key has ended. Sign in with the owner's wallet.",
};
