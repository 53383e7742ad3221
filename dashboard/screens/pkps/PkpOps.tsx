import { useState, type ReactNode } from "react";
import { OPS, PKP_OP_NAMES, type PkpOp } from "../../../protocol/ops";
import type { Pkp } from "../../app/queries";
import { ChangeDialog } from "../../changes/ChangeDialog";
import { setPkpOps } from "../../changes/operations";
import { Button } from "../../components/Button";
import { Badge } from "../../components/elements";
import { Check } from "../../components/Field";
import { useSession } from "../../session/context";

/** The operations allowed with the PKP, whatever groups and code allow. */
export function PkpOps({ pkp }: { readonly pkp: Pkp }): ReactNode {
  const { isOwner } = useSession();
  const [editing, setEditing] = useState(false);
  const denied = new Set(pkp.denied_ops);
  return (
    <section className="card stack" aria-label="Allowed operations">
      <div className="row-between">
        <h2>Allowed operations</h2>
        {isOwner && (
          <Button size="small" onPress={() => setEditing(true)}>
            Change
          </Button>
        )}
      </div>
      <p className="soft">The limit for every action and every group. A denied operation fails inside the TEE.</p>
      <ul className="row">
        {PKP_OP_NAMES.map((op) => (
          <li key={op}>
            <Badge kind={denied.has(op) ? "error" : "success"}>
              {denied.has(op) ? "never " : ""}
              {op}
            </Badge>
          </li>
        ))}
      </ul>
      {editing && <EditOps pkp={pkp} onClose={() => setEditing(false)} />}
    </section>
  );
}

function EditOps({ pkp, onClose }: { readonly pkp: Pkp; readonly onClose: () => void }): ReactNode {
  const [denied, setDenied] = useState<readonly PkpOp[]>(() =>
    PKP_OP_NAMES.filter((op) => pkp.denied_ops.includes(op)),
  );
  const allow = (op: PkpOp, on: boolean): void =>
    setDenied(PKP_OP_NAMES.filter((one) => (one === op ? !on : denied.includes(one))));
  return (
    <ChangeDialog
      onClose={onClose}
      title="Operations allowed with this PKP"
      submit="Save"
      change={() => setPkpOps(pkp.wallet_address, pkp.name, denied)}
    >
      <fieldset className="stack-s">
        <legend className="label">Allowed</legend>
        {PKP_OP_NAMES.map((op) => (
          <Check
            key={op}
            label={OPS[op].denial.label}
            hint={op}
            checked={!denied.includes(op)}
            onChange={(on) => allow(op, on)}
          />
        ))}
      </fieldset>
    </ChangeDialog>
  );
}
