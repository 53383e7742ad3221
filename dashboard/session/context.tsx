import { useQueryClient } from "@tanstack/react-query";
import { createContext, useCallback, useContext, useEffect, useMemo, useState, type ReactNode } from "react";
import { createClient, isKeyText, keyHashOf } from "../../client";
import { ClientError } from "../../client";
import { forgetKey, rememberKey } from "./remember";
import type { ChainConfig, KeySession, KnownKey, Session } from "./types";
import { ORIGIN } from "./origin";

interface Sessions {
  readonly session: Session | undefined;
  /** Why the last session ended, when the user did not end it. */
  readonly farewell: string | undefined;
  readonly begin: (session: Session) => void;
  readonly end: (why?: string) => void;
  /** Usage keys made in this tab, so that the runner can use them. In memory only. */
  readonly keys: readonly KnownKey[];
  readonly addKey: (key: KnownKey) => void;
}

/** Tells the other tabs which account has been signed out of. */
const tabs = new BroadcastChannel("signed-out");

const Context = createContext<Sessions | undefined>(undefined);

export function useSessions(): Sessions {
  const sessions = useContext(Context);
  if (sessions === undefined) throw new Error("there is no session context here");
  return sessions;
}

/** The session; only for components shown while signed in. */
export function useSession(): Session {
  const { session } = useSessions();
  if (session === undefined) throw new Error("there is no session");
  return session;
}

/** Whether the service's records of the account can be read: nobody here signs for a multisig. */
export function useIsReadable(): boolean {
  const session = useSession();
  return session.kind === "key" || !session.wallet.forSafe;
}

export function SessionProvider({ children }: { readonly children: ReactNode }): ReactNode {
  const [session, setSession] = useState<Session>();
  const [farewell, setFarewell] = useState<string>();
  const [keys, setKeys] = useState<readonly KnownKey[]>([]);
  const queries = useQueryClient();
  const begin = useCallback(
    (next: Session) => {
      // A reload would sign in with that key again.
      if (next.kind === "wallet") forgetKey();
      queries.clear();
      setFarewell(undefined);
      setSession(next);
    },
    [queries],
  );
  const endHere = useCallback(
    (why?: string) => {
      forgetKey();
      setSession(undefined);
      setKeys([]);
      setFarewell(why);
      queries.clear();
    },
    [queries],
  );
  const account = session?.account.id;
  const end = useCallback(
    (why?: string) => {
      endHere(why);
      // Whoever signs out means this browser, not this tab.
      if (why === undefined && account !== undefined) tabs.postMessage(account);
    },
    [endHere, account],
  );
  useEffect(() => {
    const onSignedOut = ({ data }: MessageEvent): void => {
      if (data === account) endHere("You signed out in another tab.");
    };
    tabs.addEventListener("message", onSignedOut);
    return () => tabs.removeEventListener("message", onSignedOut);
  }, [endHere, account]);
  const addKey = useCallback(
    (key: KnownKey) => setKeys((now) => [...now.filter(({ hash }) => hash !== key.hash), key]),
    [],
  );
  const value = useMemo(
    () => ({ session, farewell, begin, end, keys, addKey }),
    [session, farewell, begin, end, keys, addKey],
  );
  return <Context value={value}>{children}</Context>;
}

/** A client without a credential. */
export const openClient = createClient(ORIGIN);

/** @throws ClientError when the key is malformed or not live. */
export async function signInWithKey(text: string, remember: boolean): Promise<KeySession> {
  const key = text.trim();
  if (!isKeyText(key))
    throw new ClientError("malformed_key", "This is no API key: a key has 44 characters and ends with =.");
  const client = createClient({ ...ORIGIN, apiKey: key });
  const [account, config] = await Promise.all([client.account(), openClient.getNodeChainConfig()]);
  if (remember) rememberKey(key);
  else forgetKey();
  return keySession(key, { account, config });
}

export function keySession(
  key: string,
  { account, config }: { account: KeySession["account"]; config: ChainConfig },
): KeySession {
  const client = createClient({ ...ORIGIN, apiKey: key });
  return { kind: "key", account, config, client, key, isOwner: account.managed && keyHashOf(key) === account.id };
}
