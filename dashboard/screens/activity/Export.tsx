import { useState, type ReactNode } from "react";
import { exportedText } from "../../../client";
import { Button } from "../../parts/Button";
import { Select } from "../../parts/Field";
import { saveFile } from "../../parts/saveFile";
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
  const [kind, setKind] = useState<(typeof KINDS)[number][0]>("runs");
  const save = async (format: keyof typeof FORMATS): Promise<void> => {
    const pieces: string[] = [];
    const client = session.kind === "key" ? session.client : session.owner;
    for await (const text of exportedText(client, kind, { format })) pieces.push(text);
    saveFile(`keywright-${kind}.${format}`, pieces.join(""), FORMATS[format]);
  };
  if (!session.isOwner) return null;
  return (
    <details className="card">
      <summary>Export</summary>
      <div className="export">
        <Select label="What" value={kind} options={KINDS} onChange={(next) => setKind(next as typeof kind)} />
        <Button onPress={() => save("csv")}>Save as CSV</Button>
        <Button onPress={() => save("jsonl")}>Save as JSON Lines</Button>
      </div>
    </details>
  );
}
