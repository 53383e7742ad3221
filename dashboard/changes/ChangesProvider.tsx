/**
 * Performs changes. In API mode immediately; for a ChainSecured owner after a review, singly or collected into one
 * transaction or one file.
 */
import { useQueryClient } from "@tanstack/react-query";
import {
  createContext,
  lazy,
  Suspense,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useRef,
  useState,
  type ReactNode,
} from "react";
import { isTouched, readAgain, type Touched } from "../app/queries";
import { ClientError, type CallOptions } from "../../client";
import { useMessages } from "../components/Messages";
import { useSession } from "../session/context";
import type { Session } from "../session/types";
import { attempted, endAttempt } from "../session/attempts";
import { useKeep } from "../session/once";
import { useSecrets } from "../session/secrets";
import { store, storedList } from "../session/stored";
import { ScreenBoundary } from "../components/ScreenBoundary";
import type { Review } from "./Review";
import { attemptName, type Change, type Collected, type Outcome } from "./change";

// Only a wallet reviews and collects.
const CollectedBar = lazy(async () => ({ default: (await import("./CollectedBar")).CollectedBar }));

interface Changes {
  perform<R extends object>(change: Change<R>): Promise<Outcome<R>>;
}
const Context = createContext<Changes | undefined>(undefined);

export function useChanges(): Changes {
  const changes = useContext(Context);
  if (changes === undefined) throw new Error("there is nothing to change outside a session");
  return changes;
}

interface PendingChange {
  readonly Review: typeof Review;
  readonly change: Change;
  readonly answer: (outcome: Outcome<object>) => void;
}

export function ChangesProvider({ children }: { readonly children: ReactNode }): ReactNode {
  const session = useSession();
  const viaApi = useApi(session);
  const refresh = useRefresh(session);
  const [pending, setPending] = useState<PendingChange>();
  const [collected, setCollected] = useCollected(session.account.id);
  const nextId = useRef(collected.at(-1)?.id ?? 0);

  const perform = useCallback(
    async <R extends object>(change: Change<R>): Promise<Outcome<R>> => {
      if (session.kind === "key") return viaApi(change);
      // Before it is pending: whoever asked is told if this does not load.
      const { Review } = await import("./Review");
      return new Promise((resolve) =>
        setPending({ Review, change: change as unknown as Change, answer: resolve as PendingChange["answer"] }),
      );
    },
    [session, viaApi],
  );
  const settle = (outcome: Outcome<object>): void => {
    pending?.answer(outcome);
    setPending(undefined);
    // Also what failed or was not seen on chain may have been done.
    if (outcome.state !== "collected") void refresh(pending?.change.touches);
  };
  const value = useMemo(() => ({ perform }), [perform]);
  return (
    <Context value={value}>
      {children}
      {session.kind === "wallet" && pending !== undefined && (
        <pending.Review
          key={pending.change.title + String(nextId.current)}
          session={session}
          change={pending.change}
          onOutcome={settle}
          onCollect={(write) => {
            const { title, words } = pending.change;
            setCollected((now) => [...now, { id: (nextId.current += 1), title, words, write }]);
          }}
        />
      )}
      {session.kind === "wallet" && collected.length > 0 && (
        <ScreenBoundary what="The bar of collected changes" className="collected">
          <Suspense fallback={null}>
            <CollectedBar
              session={session}
              collected={collected}
              onRemove={(id) => setCollected((now) => now.filter((one) => one.id !== id))}
              onClear={() => setCollected([])}
              onSent={() => setCollected((now) => now.map((one) => ({ ...one, wasSent: true })))}
              onReviewed={() => void refresh()}
            />
          </Suspense>
        </ScreenBoundary>
      )}
    </Context>
  );
}

/** The collected changes, kept in the tab: they survive a reload. Calldata is public; nothing of them is secret. */
function useCollected(account: string) {
  const place = `collected.${account}`;
  const [collected, setCollected] = useState<readonly Collected[]>(() =>
    storedList<Collected>(place).map((one) => ({ ...one, write: { ...one.write, resultOf: () => ({}) } })),
  );
  useEffect(() => store("sessionStorage", place, JSON.stringify(collected)), [place, collected]);
  return [collected, setCollected] as const;
}

/**
 * Repeated, these would make two, or be refused because they are done; nothing later makes their stored answer untrue.
 * All else is done each time: a stored answer from before later changes, such as an earlier freeze, would say that it
 * is done.
 */
const ONCE: ReadonlySet<string> = new Set([
  ...["createWallet", "addGroup", "addUsageApiKey", "createTrigger"],
  ...["removeGroup", "removeUsageApiKey", "deleteTrigger", "transferOwnership"],
]);

type Send<R> = (options: CallOptions) => Promise<R>;

/**
 * Sends what is done once under its attempt's idempotency key, so that retrying after a lost answer does nothing twice.
 * A secret in the answer is shown before anything else is read, and its attempt stays until it is stored.
 */
function useAttempt(accountId: string): <R extends object>(change: Change<R>, send: Send<R>) => Promise<R> {
  const { during } = useSecrets();
  const keep = useKeep();
  return useCallback(
    async <R extends object>({ request, secret }: Change<R>, send: Send<R>): Promise<R> => {
      const name = attemptName(accountId, request);
      if (secret === undefined) return ONCE.has(request[0]) ? attempted(name, send) : send({});
      const { kind, label } = secret;
      const made = await during(attempted(name, send, { kind, label, account: accountId, body: request[1] }));
      const shown = secret.in(made);
      if (shown === undefined) endAttempt(name);
      else void keep(secret, shown).then(() => endAttempt(name));
      return made;
    },
    [accountId, during, keep],
  );
}

function useApi(session: Session): <R extends object>(change: Change<R>) => Promise<Outcome<R>> {
  const attempt = useAttempt(session.account.id);
  const refresh = useRefresh(session);
  const queries = useQueryClient();
  const say = useMessages();
  return useCallback(
    async <R extends object>(change: Change<R>): Promise<Outcome<R>> => {
      if (session.kind !== "key") throw new Error("the service changes API-mode accounts only");
      try {
        const result = await attempt(change, (options) => change.viaApi(session.client, options));
        say(`Done: ${change.title}.`);
        const read = refresh(change.touches);
        // The form is not kept from closing below the secret.
        if (change.secret === undefined) await read;
        return { state: "done", result };
      } catch (error) {
        // It may have been done: the answer alone may be lost.
        void refresh(change.touches);
        // Refetch the account: its query ends the session if the key is no longer valid.
        if (error instanceof ClientError && [401, 403].includes(error.status ?? 0))
          void queries.invalidateQueries({ queryKey: ["account"] });
        throw error;
      }
    },
    [session, attempt, refresh, say, queries],
  );
}

/** Refetches what was touched, or else everything, except what a wallet would have to sign for. */
function useRefresh(session: Session): (touched?: readonly Touched[]) => Promise<void> {
  const queries = useQueryClient();
  const isKey = session.kind === "key";
  return useCallback(
    (touched) =>
      readAgain(queries, {
        predicate: (query) =>
          touched === undefined ? isKey || query.queryKey[0] !== "signed" : isTouched(query, touched, isKey),
      }),
    [queries, isKey],
  );
}
