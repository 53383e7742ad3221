import { useState, type ReactNode } from "react";
import type { UsageKey } from "../../app/queries";
import { ChangeDialog } from "../../changes/ChangeDialog";
import { revokeAll, revokeKey } from "../../changes/operations";
import { Button } from "../../components/Button";
import { plural, quoted } from "../../components/text";

interface Props {
  readonly usageKey: UsageKey;
  readonly onClose: () => void;
}

export function RevokeKey({ usageKey: { id, name }, onClose }: Props): ReactNode {
  return (
    <ChangeDialog
      onClose={onClose}
      title={`Revoke ${quoted(name, "this key")}?`}
      about={
        "Requests with this key are refused from the next one on. It cannot be undone; you can make another key at " +
        "any time."
      }
      submit="Revoke"
      danger
      change={() => revokeKey(id, name)}
    />
  );
}

interface AllProps {
  /** Those that are loaded. */
  readonly keys: readonly UsageKey[];
  readonly total: number;
}

export function RevokeAll({ keys, total }: AllProps): ReactNode {
  const [asking, setAsking] = useState(false);
  return (
    <>
      <Button variant="danger" onPress={() => setAsking(true)}>
        Revoke all
      </Button>
      {asking && (
        <ChangeDialog
          onClose={() => setAsking(false)}
          title={`Revoke ${plural(total, "usage key")}?`}
          about={
            "Every program that uses one of them is refused from its next request on. It cannot be undone. The " +
            "account itself is not touched."
          }
          submit="Revoke all"
          danger
          change={() => revokeAll(keys, total)}
        />
      )}
    </>
  );
}
