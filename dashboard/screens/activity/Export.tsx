import { useState, type ReactNode } from "react";
import { exportedText } from "../../../client";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { Select } from "../../components/Field";
import { saveFile } from "../../components/saveFile";
import { useSession } from "../../session/context";

const KINDS = [
  ["runs", "Runs, with the hashes of their receipts"],
  ["writes", "Changes, with their transactions"],
  ["postings", "Credit: every entry of the ledger"],
] as const;
const FORMATS = { csv: "text/csv", jsonl: "application/x-ndjson" } as const;

/** The whole history as a file for an auditor. Owners only, as the service has it. */
export function Export(): ReactNode {
  const session = useSession();
  const [open, setOpen] = useState(false);
  const [kind, setKind] = useState<(typeof KINDS)[number][0]>("runs");
  const save = async (format: keyof typeof FORMATS): Promise<void> => {
    const pieces: string[] = [];
    const client = session.kind === "key" ? session.client : session.owner;
    for await (const text of exportedText(client, kind, { format })) pieces.push(text);
    saveFile(`keywright-${kind}.${format}`, pieces.join(""), FORMATS[format]);
  };
  if (!session.isOwner) return null;
  return (
    <>
      <Button onPress={() => setOpen(true)}>Export</Button>
      <Dialog
        open={open}
        onClose={() => setOpen(false)}
        title="Export the whole history"
        about="As one file, also of what this page no longer lists."
      >
        <Select label="What" value={kind} options={KINDS} onChange={setKind} />
        <div className="dialog-foot">
          <Button onPress={() => save("csv")}>Save as CSV</Button>
          <Button onPress={() => save("jsonl")}>Save as JSON Lines</Button>
        </div>
      </Dialog>
    </>
  );
}
