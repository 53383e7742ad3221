import { useState, type ReactNode } from "react";
import { useChanges } from "../../changes/ChangesProvider";
import { freezeAccount, unfreezeAccount } from "../../changes/operations";
import { Button } from "../../components/Button";
import { FormDialog } from "../../components/Dialog";
import type { Account } from "../../session/types";
import { Task } from "./Task";

/** The emergency stop and its release. */
export function Freeze({ account }: { readonly account: Account }): ReactNode {
  const { perform } = useChanges();
  const [asking, setAsking] = useState(false);
  const { frozen } = account;
  return (
    <Task
      title={frozen ? "The account is frozen" : "Emergency stop"}
      about={
        frozen
          ? "No key runs anything and no usage key changes anything, until you end it."
          : "Stops every run of every key at once, and every change by usage keys. You remain able to change the " +
            "account, and you can end it at any time."
      }
    >
      <Button variant={frozen ? "primary" : "danger"} onPress={() => setAsking(true)}>
        {frozen ? "Unfreeze account" : "Freeze account"}
      </Button>
      {asking && (
        <FormDialog
          open
          onClose={() => setAsking(false)}
          title={frozen ? "Unfreeze the account?" : "Freeze the account?"}
          about={
            frozen
              ? "Keys work again, with what each of them may do."
              : "Your programs are refused from their next request on. PKPs, groups and keys stay as they are."
          }
          submit={frozen ? "Unfreeze account" : "Freeze account"}
          danger={!frozen}
          onSubmit={async () => (await perform(frozen ? unfreezeAccount() : freezeAccount())).state !== "cancelled"}
        >
          {null}
        </FormDialog>
      )}
    </Task>
  );
}
