import { useState, type ReactNode } from "react";
import { useActions, usePkps, type Action, type Pkp } from "../../app/queries";
import { ChangeDialog } from "../../changes/ChangeDialog";
import { createGroup } from "../../changes/operations";
import { Absent } from "../../components/elements";
import { Picker, StringsFields, type Option, type Strings } from "../../components/Field";
import { short } from "../../components/text";

export const pkpOptions = (pkps: readonly Pkp[]): Option[] =>
  pkps.map(({ wallet_address: id, name }) => ({ id, label: name || short(id), hint: short(id) }));
export const actionOptions = (actions: readonly Action[]): Option[] =>
  actions.map(({ hashed_cid: id, name, action_ipfs_cid: cid }) => ({
    id,
    label: name || short(cid ?? id),
    hint: short(cid ?? id),
  }));

interface Props {
  readonly onClose: () => void;
  /** Initially selected. */
  readonly pkps?: readonly string[];
  readonly actions?: readonly string[];
}

export function GroupForm({ onClose, pkps: firstPkps = [], actions: firstActions = [] }: Props): ReactNode {
  const allPkps = usePkps();
  const allActions = useActions();
  const [strings, setStrings] = useState<Strings>({ name: "", description: "" });
  const [pkps, setPkps] = useState(firstPkps);
  const [actions, setActions] = useState(firstActions);
  return (
    <ChangeDialog
      onClose={onClose}
      title="Create a group"
      about="A group says: these actions may use these PKPs. Every action listed may use every PKP listed."
      submit="Create group"
      change={() => createGroup(strings, pkps, actions)}
    >
      <StringsFields value={strings} onChange={setStrings} placeholder="Payouts" />
      <Picker
        legend="PKPs"
        options={pkpOptions(allPkps.items)}
        chosen={pkps}
        onChange={setPkps}
        empty={<Absent from={allPkps}>There are no PKPs yet. You can list some later.</Absent>}
      />
      <Picker
        legend="Actions"
        options={actionOptions(allActions.items)}
        chosen={actions}
        onChange={setActions}
        empty={<Absent from={allActions}>There are no actions yet. You can list some later.</Absent>}
      />
    </ChangeDialog>
  );
}
