import { useState, type ReactNode } from "react";
import { useChanges } from "../../changes/ChangesProvider";
import { createPkp } from "../../changes/operations";
import { FormDialog } from "../../components/Dialog";
import { StringsFields, type Strings } from "../../components/Field";

export function CreatePkp({ onClose }: { readonly onClose: () => void }): ReactNode {
  const { perform } = useChanges();
  const [strings, setStrings] = useState<Strings>({ name: "", description: "" });
  return (
    <FormDialog
      open
      onClose={onClose}
      title="Create a PKP"
      about="A key pair whose private half exists only inside the TEE, and only while it is used. You get its address."
      submit="Create PKP"
      onSubmit={async () => (await perform(createPkp(strings))).state !== "cancelled"}
    >
      <StringsFields value={strings} onChange={setStrings} placeholder="Treasury" />
    </FormDialog>
  );
}
