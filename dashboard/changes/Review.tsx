/**
 * A ChainSecured owner's review before signing: what will be sent, in words; then the progress until it is in a block.
 */
import { useEffect, useRef, useState, type ReactNode } from "react";
import type { OwnerWrite } from "../../client";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { Facts, Id, Notice, Slow, Spinner } from "../parts/elements";
import { wordsOf } from "../parts/failures";
import { useMessages } from "../parts/Messages";
import { Address, Transaction } from "../parts/explorer";
import type { WalletSession } from "../session/types";
import type { Change, Outcome, Prepared } from "./change";
import { sendingOf } from "./sending";
import { SignedCalls } from "./Signed";

type Phase =
  | { readonly at: "first" }
  | { readonly at: "preparing" }
  | { readonly at: "review"; readonly prepared: Prepared<object>; readonly cost: string }
  | { readonly at: "wallet"; readonly prepared: Prepared<object> }
  | { readonly at: "chain"; readonly hash: string };

interface Props {
  readonly session: WalletSession;
  readonly change: Change;
  readonly onOutcome: (outcome: Outcome<object>) => void;
  /** Absent where changes cannot be collected. */
  readonly onCollect?: (write: OwnerWrite) => void;
}

export function Review({ session, change, onOutcome, onCollect }: Props): ReactNode {
  const { phase, failure, prepare, send } = useReview(session, change, onOutcome);
  const collect = ({ write, early = {} }: Prepared<object>): void => {
    onCollect?.(write);
    onOutcome({ state: "collected", early });
  };
  const cancel = (): void => onOutcome({ state: "cancelled" });
  const pending = phase.at === "wallet" || phase.at === "chain";
  return (
    <Dialog open title={`Review: ${change.title}`} closable={!pending} onClose={cancel}>
      <Summary
        session={session}
        change={change}
        functionName={phase.at === "review" || phase.at === "wallet" ? phase.prepared.write.functionName : undefined}
      />
      {phase.at === "review" && <SignedCalls data={phase.prepared.write.data} />}
      {failure !== undefined && <Notice kind="bad">{failure}</Notice>}
      {phase.at === "first" && <First change={change} onCancel={cancel} onGo={prepare} />}
      {phase.at === "preparing" && (
        <Spinner label={change.signedFirst === undefined ? "Asking the chain" : "Waiting for your wallet"} />
      )}
      {phase.at === "review" && (
        <Ready
          cost={phase.cost}
          forSafe={session.wallet.forSafe}
          onCancel={cancel}
          onSend={() => send(phase.prepared)}
          onCollect={onCollect === undefined ? undefined : () => collect(phase.prepared)}
        />
      )}
      {phase.at === "wallet" && <Spinner label={`Waiting for ${session.wallet.name}`} />}
      {phase.at === "chain" && <PendingTransaction hash={phase.hash} chain={session.config} />}
    </Dialog>
  );
}

interface FirstProps {
  readonly change: Change;
  readonly onCancel: () => void;
  readonly onGo: () => Promise<void>;
}

/** The signature needed before there is anything to send; or a retry when preparing has failed. */
function First({ change, onCancel, onGo }: FirstProps): ReactNode {
  return (
    <>
      {change.signedFirst !== undefined && <Notice>{change.signedFirst}</Notice>}
      <Foot onCancel={onCancel}>
        <Button look="primary" onPress={onGo}>
          {change.signedFirst === undefined ? "Try again" : "Sign the request"}
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
          <Button look={forSafe ? "primary" : "plain"} onPress={onCollect}>
            Collect
          </Button>
        )}
        {!forSafe && (
          <Button look="primary" onPress={onSend}>
            Sign and send
          </Button>
        )}
      </Foot>
    </>
  );
}

function useReview(session: WalletSession, change: Change, onOutcome: Props["onOutcome"]) {
  const say = useMessages();
  const [phase, setPhase] = useState<Phase>({ at: change.signedFirst === undefined ? "preparing" : "first" });
  const [failure, setFailure] = useState<string>();
  const sending = sendingOf(session);
  const begun = useRef(false);

  const prepare = async (): Promise<void> => {
    setFailure(undefined);
    setPhase({ at: "preparing" });
    try {
      await session.wallet.ready();
      const prepared = await change.viaChain(session.owner);
      setPhase({ at: "review", prepared, cost: await sending.cost(prepared.write) });
    } catch (error) {
      setFailure(wordsOf(error));
      setPhase({ at: "first" });
    }
  };
  const send = async (prepared: Prepared<object>): Promise<void> => {
    setFailure(undefined);
    setPhase({ at: "wallet", prepared });
    try {
      await session.wallet.ready();
      const sent = await sending.send(prepared.write, (hash) => setPhase({ at: "chain", hash }));
      say(`Done: ${change.title}, in block ${sent.block_number}.`);
      onOutcome({ state: "done", result: sent });
    } catch (error) {
      setFailure(wordsOf(error));
      setPhase({ at: "review", prepared, cost: await sending.cost(prepared.write).catch(() => "") });
    }
  };
  useEffect(() => {
    if (begun.current || change.signedFirst !== undefined) return;
    begun.current = true;
    void prepare();
  });
  return { phase, failure, prepare, send };
}

function Foot({ onCancel, children }: { readonly onCancel: () => void; readonly children: ReactNode }): ReactNode {
  return (
    <div className="dialog-foot">
      <Button look="quiet" onPress={onCancel}>
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

function PendingTransaction({
  hash,
  chain,
}: {
  readonly hash: string;
  readonly chain: WalletSession["config"];
}): ReactNode {
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
