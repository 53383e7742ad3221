/**
 * A ChainSecured owner's review before signing: what will be sent, in words; then the progress until it is in a block.
 */
import { useEffect, useRef, useState, type ReactNode } from "react";
import type { DecodedCall, OwnerWrite } from "../../client";
import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import { Facts, Failure, Id, Notice, Slow, Spinner, When } from "../components/elements";
import { wordsOf } from "../components/failures";
import { useMessages } from "../components/Messages";
import { Address, Transaction } from "../components/explorer";
import type { WalletSession } from "../session/types";
import { useKeep } from "../session/once";
import type { Outcome, Reviewed } from "./change";
import { offerOf, pendingOf, type Offer, type Pending } from "./sending";
import { SignedCalls } from "./Signed";
import { SignedRequest } from "./SignedRequest";

type Phase =
  | { readonly at: "first" }
  /** Nothing is asked of the wallet yet but to be open, and on the right chain: may be left. */
  | { readonly at: "opening" }
  | { readonly at: "preparing" }
  | ({ readonly at: "review" } & Signable)
  | { readonly at: "wallet"; readonly write: OwnerWrite }
  | { readonly at: "chain"; readonly hash: string }
  /** It may still get into a block: sending it again might do it twice. */
  | { readonly at: "sent"; readonly pending: Pending };

/** What may be signed: nothing is offered whose calls cannot be shown. */
interface Signable {
  readonly write: OwnerWrite;
  readonly calls: readonly DecodedCall[];
  readonly offer: Offer;
}

interface Props {
  readonly session: WalletSession;
  readonly change: Reviewed;
  readonly onOutcome: (outcome: Outcome<object>) => void;
  /** Absent where changes cannot be collected. */
  readonly onCollect?: (write: OwnerWrite) => void;
  /** From now on it may be on chain. */
  readonly onSent?: () => void;
}

const AT_WALLET: ReadonlySet<Phase["at"]> = new Set(["opening", "wallet"]);
/** What was sent is not left by accident. */
const KEPT_OPEN: ReadonlySet<Phase["at"]> = new Set(["wallet", "chain", "sent"]);

export function Review({ session, change, onOutcome, onCollect, onSent }: Props): ReactNode {
  const { phase, failure, left, prepare, send } = useReview(session, change, onOutcome, onSent);
  const collect = (write: OwnerWrite): void => {
    onCollect?.(write);
    onOutcome({ state: "collected" });
  };
  const cancel = (): void => onOutcome({ state: "cancelled" });
  const isMinting = phase.at === "preparing" && left.signedFirst !== undefined;
  const write = "write" in phase ? phase.write : undefined;
  return (
    <Dialog title={`Review: ${change.title}`} closable={!isMinting && !KEPT_OPEN.has(phase.at)} onClose={cancel}>
      <Summary session={session} change={change} functionName={write?.functionName} />
      {phase.at === "review" && <SignedCalls calls={phase.calls} />}
      <Failure error={failure} />
      {phase.at === "first" && <First session={session} change={left} onCancel={cancel} onGo={prepare} />}
      {phase.at === "preparing" && <Spinner label={isMinting ? "Waiting for your wallet" : "Asking the chain"} />}
      {phase.at === "review" && (
        <Ready
          cost={phase.offer.cost}
          forSafe={session.wallet.forSafe}
          onCancel={cancel}
          onSend={() => send(phase)}
          onCollect={onCollect === undefined ? undefined : () => collect(phase.write)}
        />
      )}
      {AT_WALLET.has(phase.at) && <Spinner label={`Waiting for ${session.wallet.name}`} />}
      {phase.at === "chain" && <PendingTransaction hash={phase.hash} chain={session.config} />}
      {phase.at === "sent" && (
        <Sent pending={phase.pending} chain={session.config} onClose={() => onOutcome({ state: "sent" })} />
      )}
    </Dialog>
  );
}

interface FirstProps extends Pick<Props, "session" | "change"> {
  readonly onCancel: () => void;
  readonly onGo: () => Promise<void>;
}

/** The signature needed before there is anything to send; or a retry when preparing has failed. */
function First({ session, change: { signedFirst }, onCancel, onGo }: FirstProps): ReactNode {
  return (
    <>
      {signedFirst !== undefined && (
        <>
          <Notice>{signedFirst.why}</Notice>
          <SignedRequest type={signedFirst.type} address={session.wallet.address} config={session.config} />
        </>
      )}
      <Foot onCancel={onCancel}>
        <Button variant="primary" onPress={onGo}>
          {signedFirst === undefined ? "Try again" : "Sign the request"}
        </Button>
      </Foot>
    </>
  );
}

interface ReadyProps {
  readonly cost: string;
  readonly forSafe: boolean;
  readonly onCancel: () => void;
  readonly onSend: () => Promise<void>;
  readonly onCollect: (() => void) | undefined;
}

function Ready({ cost, forSafe, onCancel, onSend, onCollect }: ReadyProps): ReactNode {
  return (
    <>
      <p>{cost}</p>
      <Foot onCancel={onCancel}>
        {onCollect !== undefined && (
          <Button variant={forSafe ? "primary" : "plain"} onPress={onCollect}>
            Collect
          </Button>
        )}
        {!forSafe && (
          <Button variant="primary" onPress={onSend}>
            Sign and send
          </Button>
        )}
      </Foot>
    </>
  );
}

const callsOf = async ({ data }: OwnerWrite): Promise<readonly DecodedCall[]> =>
  (await import("../../client/calls")).decodeCalls(data);

const NOT_YET = "It opens nothing yet: next you review the transaction that attaches it.";

function useReview(session: WalletSession, change: Reviewed, onOutcome: Props["onOutcome"], onSent: Props["onSent"]) {
  const say = useMessages();
  const keepSecret = useKeep();
  const [phase, setPhase] = useState<Phase>({ at: change.signedFirst === undefined ? "preparing" : "first" });
  const [failure, setFailure] = useState<string>();
  /** What the first signature was for: once it is made, a retry goes on with it. */
  const [made, setMade] = useState<OwnerWrite>();
  const begun = useRef(false);
  const isLeft = useRef(false);

  /** False where the review was left meanwhile: a wallet that is locked may be opened much later. */
  const isReady = async (): Promise<boolean> => {
    setFailure(undefined);
    setPhase({ at: "opening" });
    await session.wallet.ready();
    return !isLeft.current;
  };
  const keep = async (minted: object): Promise<void> => {
    const secret = change.secret?.in(minted);
    if (change.secret !== undefined && secret !== undefined) await keepSecret(change.secret, secret, NOT_YET);
  };
  const prepare = async (): Promise<void> => {
    try {
      if (!(await isReady())) return;
      setPhase({ at: "preparing" });
      const write = made ?? (await change.viaChain(session.owner, keep));
      if (change.signedFirst !== undefined) setMade(write);
      const [calls, offer] = await Promise.all([callsOf(write), offerOf(session, write)]);
      setPhase({ at: "review", write, calls, offer });
    } catch (error) {
      setFailure(wordsOf(error));
      setPhase({ at: "first" });
    }
  };
  const send = async ({ write, calls, offer }: Signable): Promise<void> => {
    try {
      if (!(await isReady())) return;
      setPhase({ at: "wallet", write });
      const sent = await offer.send((hash) => {
        onSent?.();
        setPhase({ at: "chain", hash });
      });
      say(`Done: ${change.title}, in block ${sent.block_number}.`);
      onOutcome({ state: "done", result: sent });
    } catch (error) {
      const pending = pendingOf(error);
      if (pending !== undefined) {
        onSent?.();
        return setPhase({ at: "sent", pending });
      }
      setFailure(wordsOf(error));
      setPhase({ at: "review", write, calls, offer: await offerOf(session, write, error).catch(() => offer) });
    }
  };
  useEffect(() => {
    isLeft.current = false;
    return () => void (isLeft.current = true);
  }, []);
  useEffect(() => {
    if (begun.current || change.signedFirst !== undefined) return;
    begun.current = true;
    void prepare();
  });
  const left = made === undefined ? change : { ...change, signedFirst: undefined };
  return { phase, failure, left, prepare, send };
}

function Foot({ onCancel, children }: { readonly onCancel: () => void; readonly children: ReactNode }): ReactNode {
  return (
    <div className="dialog-foot">
      <Button variant="quiet" onPress={onCancel}>
        Cancel
      </Button>
      {children}
    </div>
  );
}

interface SummaryProps extends Pick<Props, "session" | "change"> {
  readonly functionName: string | undefined;
}

function Summary({ session, change, functionName }: SummaryProps): ReactNode {
  const { owner, account, config } = session;
  return (
    <Facts
      items={[
        ...(functionName === undefined ? [] : [["Function", <code key="f">{functionName}</code>] as const]),
        ...change.words,
        ["Account", account.name === "" ? <Id key="a" value={account.id} what="account id" /> : account.name],
        ["Sent to", <Address key="c" value={owner.contractAddress} what="contract" chain={config} />],
        ["Sent from", <Address key="o" value={owner.owner} what="owner" chain={config} />],
      ]}
    />
  );
}

interface TransactionProps {
  readonly hash: string;
  readonly chain: WalletSession["config"];
}

function PendingTransaction({ hash, chain }: TransactionProps): ReactNode {
  return (
    <div className="stack-s">
      <Spinner label="Sent. Waiting for a block" />
      <Slow>
        The chain is slower than usual. The transaction has been sent: it counts when a block has it, also if you leave
        this page.
      </Slow>
      <Transaction hash={hash} chain={chain} />
    </div>
  );
}

interface SentProps extends Pick<TransactionProps, "chain"> {
  readonly pending: Pending;
  readonly onClose: () => void;
}

function Sent({ pending: { words, hash, deadlineMs }, chain, onClose }: SentProps): ReactNode {
  return (
    <>
      <Notice kind="error">
        {hash === undefined || deadlineMs !== undefined
          ? words
          : "The transaction was sent and has not been seen on chain. It counts when a block has it: look for it " +
            "before you send the same change again."}
      </Notice>
      {hash !== undefined && <Transaction hash={hash} chain={chain} />}
      {deadlineMs !== undefined && <Facts items={[["Deadline", <When key="d" at={deadlineMs} />]]} />}
      <div className="dialog-foot">
        <Button variant="primary" onPress={onClose}>
          Close
        </Button>
      </div>
    </>
  );
}
