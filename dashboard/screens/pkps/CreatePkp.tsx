import { useState, type ReactNode } from "react";
import { ChangeDialog } from "../../changes/ChangeDialog";
import { createPkp } from "../../changes/operations";
import { StringsFields, type Strings } from "../../components/Field";

export function CreatePkp({ onClose }: { readonly onClose: () => void }): ReactNode {
  const [strings, setStrings] = useState<Strings>({ name: "", description: "" });
  return (
    <ChangeDialog
      onClose={onClose}
      title="Create a PKP"
      about="A key pair whose private half exists only inside the TEE, and only while it is used. You get its address."
      submit="Create PKP"
      change={() => createPkp(strings)}
    >
      <StringsFields value={strings} onChange={setStrings} placeholder="Treasury" />
    </ChangeDialog>
  );
}
