import { useState, type ReactNode } from "react";
import type { Pkp } from "../../app/queries";
import { useChanges } from "../../changes/ChangesProvider";
import { renamePkp } from "../../changes/operations";
import { FormDialog } from "../../components/Dialog";
import { StringsFields, type Strings } from "../../components/Field";

export function RenamePkp({ pkp, onClose }: { readonly pkp: Pkp; readonly onClose: () => void }): ReactNode {
  const { perform } = useChanges();
  const [{ name, description }, setStrings] = useState<Strings>(pkp);
  return (
    <FormDialog
      open
      onClose={onClose}
      title="Rename the PKP"
      submit="Save"
      onSubmit={async () =>
        (await perform(renamePkp(pkp.wallet_address, pkp.name, { name, description }))).state !== "cancelled"
      }
    >
      <StringsFields value={{ name, description }} onChange={setStrings} />
    </FormDialog>
  );
}
