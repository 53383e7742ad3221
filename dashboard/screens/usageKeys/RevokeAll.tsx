import { useState, type ReactNode } from "react";
import type { UsageKey } from "../../app/queries";
import { useChanges } from "../../changes/ChangesProvider";
import { revokeAll } from "../../changes/operations";
import { Button } from "../../components/Button";
import { FormDialog } from "../../components/Dialog";
import { plural } from "../../components/text";

export function RevokeAll({ keys }: { readonly keys: readonly UsageKey[] }): ReactNode {
  const { perform } = useChanges();
  const [asking, setAsking] = useState(false);
  return (
    <>
      <Button variant="danger" onPress={() => setAsking(true)}>
        Revoke all
      </Button>
      {asking && (
        <FormDialog
          open
          onClose={() => setAsking(false)}
          title={`Revoke ${plural(keys.length, "usage key")}?`}
          about={
            "Every program that uses one of them is refused from its next request on. It cannot be undone. The " +
            "account itself is not touched."
          }
          submit="Revoke all"
          danger
          onSubmit={async () => (await perform(revokeAll(keys))).state !== "cancelled"}
        >
          {null}
        </FormDialog>
      )}
    </>
  );
}
