import { useState, type ReactNode } from "react";
import { CID, keepCode } from "./codes";
import { useChanges } from "../../changes/ChangesProvider";
import { addAction } from "../../changes/operations";
import { FormDialog } from "../../components/Dialog";
import { StringsFields, TextField, type Strings } from "../../components/Field";

interface Props {
  readonly onClose: () => void;
  readonly onMade?: (cid: string, code: string) => void;
  readonly code?: string;
  readonly name?: string;
  readonly description?: string;
}

export function AddAction({ onClose, onMade, code: first = "", name = "", description = "" }: Props): ReactNode {
  const { perform } = useChanges();
  const [strings, setStrings] = useState<Strings>({ name, description });
  const [code, setCode] = useState(first);
  return (
    <FormDialog
      wide
      onClose={onClose}
      title="Add an action"
      about={
        "Only the address of the code, its CID, goes on the chain. Keep the code itself: it is sent along when the " +
        "action is run, or fetched from IPFS."
      }
      submit="Add action"
      onSubmit={async () => {
        const cid = CID.test(code.trim()) ? code.trim() : await keepCode(code);
        const { state } = await perform(addAction(cid, strings));
        if (state === "done") onMade?.(cid, code);
        return state !== "cancelled";
      }}
    >
      <StringsFields value={strings} onChange={setStrings} placeholder="Sign a message" />
      <TextField
        label="Code"
        code
        lines={10}
        required
        value={code}
        onChange={setCode}
        hint="JavaScript with a function main, or the CID of code that is on IPFS."
      />
    </FormDialog>
  );
}
