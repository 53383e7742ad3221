import { useState, type ReactNode } from "react";
import type { UsageKey } from "../../app/queries";
import { useChanges } from "../../changes/ChangesProvider";
import { revokeKey } from "../../changes/operations";
import { Button } from "../../parts/Button";
import { FormDialog } from "../../parts/Dialog";
import { quoted } from "../../parts/text";

/** The button and its confirmation. */
export function RevokeKey({ usageKey }: { readonly usageKey: UsageKey }): ReactNode {
  const { perform } = useChanges();
  const [asking, setAsking] = useState(false);
  const { id, name } = usageKey;
  return (
    <>
      <Button size="small" look="danger" onPress={() => setAsking(true)}>
        Revoke
      </Button>
      {asking && (
        <FormDialog
          open
          onClose={() => setAsking(false)}
          title={`Revoke ${quoted(name, "this key")}?`}
          about={
            "Requests with this key are refused from the next one on. It cannot be undone; you can make another key " +
            "at any time."
          }
          submit="Revoke"
          danger
          onSubmit={async () => (await perform(revokeKey(id, name))).state !== "cancelled"}
        >
          {null}
        </FormDialog>
      )}
    </>
  );
}
