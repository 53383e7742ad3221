/**
 * The changes collected so far: sent as one transaction with one signature, or saved as one file for a multisig's
 * signers.
 */
import { useState, type ReactNode } from "react";
import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import { plural } from "../components/text";
import { saveFile } from "../components/saveFile";
import type { WalletSession } from "../session/types";
import type { Collected, Reviewed } from "./change";
import { Review } from "./Review";

interface Props {
  readonly session: WalletSession;
  readonly collected: readonly Collected[];
  readonly onRemove: (id: number) => void;
  readonly onClear: () => void;
  readonly onSent: () => void;
  /** Something may have been sent. */
  readonly onReviewed: () => void;
}

export function CollectedBar({ session, collected, onRemove, onClear, onSent, onReviewed }: Props): ReactNode {
  const [open, setOpen] = useState<"list" | "review">();
  const wasSent = collected.some((one) => one.wasSent === true);
  const { owner, wallet } = session;
  const save = (): void => {
    const file = owner.safeFile(
      collected.map(({ write }) => write),
      { name: plural(collected.length, "change"), description: collected.map(({ title }) => title).join("; ") },
    );
    saveFile("safe-transactions.json", `${JSON.stringify(file, null, 2)}\n`, "application/json");
  };
  return (
    <section className="collected row-between" aria-label="Collected changes">
      <strong>
        {plural(collected.length, "change")} collected{wasSent && ", perhaps on chain already"}
      </strong>
      <div className="row">
        <Button variant="quiet" onPress={() => setOpen("list")}>
          Show
        </Button>
        <Button onPress={save}>Save as Safe file</Button>
        {!wallet.forSafe && (
          <Button variant="primary" onPress={() => setOpen("review")}>
            Send all
          </Button>
        )}
      </div>
      <Dialog
        open={open === "list"}
        onClose={() => setOpen(undefined)}
        title="Collected changes"
        about={
          wasSent
            ? "These changes may have been sent: look for them on chain before you send them again."
            : "These changes have not been sent yet."
        }
      >
        <ol className="stack-s">
          {collected.map(({ id, title }) => (
            <li key={id} className="row-between">
              <span>{title}</span>
              <Button size="small" variant="quiet" onPress={() => onRemove(id)}>
                Drop
              </Button>
            </li>
          ))}
        </ol>
        <div className="dialog-foot">
          <Button variant="danger" onPress={onClear}>
            Drop all
          </Button>
        </div>
      </Dialog>
      {open === "review" && (
        <Review
          session={session}
          change={together(collected)}
          onSent={onSent}
          onOutcome={({ state }) => {
            setOpen(undefined);
            if (state === "done") onClear();
            onReviewed();
          }}
        />
      )}
    </section>
  );
}

/** Combines the collected changes into one atomic change, in order. */
function together(collected: readonly Collected[]): Reviewed {
  return {
    title: `${plural(collected.length, "change")} in one transaction`,
    words: collected.map(({ title }, at) => [`Change ${at + 1}`, title] as const),
    viaChain: async ({ prepare }) => prepare.batch(collected.map(({ write }) => write)),
  };
}
