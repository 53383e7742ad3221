import type { ReactNode } from "react";
import type { UsageKey } from "../../app/queries";
import { useChanges } from "../../changes/ChangesProvider";
import { revokeKey } from "../../changes/operations";
import { FormDialog } from "../../components/Dialog";
import { quoted } from "../../components/text";

interface Props {
  readonly usageKey: UsageKey;
  readonly onClose: () => void;
}

export function RevokeKey({ usageKey: { id, name }, onClose }: Props): ReactNode {
  const { perform } = useChanges();
  return (
    <FormDialog
      open
      onClose={onClose}
      title={`Revoke ${quoted(name, "this key")}?`}
      about={
        "Requests with this key are refused from the next one on. It cannot be undone; you can make another key at " +
        "any time."
      }
      submit="Revoke"
      danger
      onSubmit={async () => (await perform(revokeKey(id, name))).state !== "cancelled"}
    >
      {null}
    </FormDialog>
  );
}
