/** The dialogs that change a group. */
import { useNavigate } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";
import { useActions, usePkps, type Group, type Members } from "../../app/queries";
import { ChangeDialog, RenameDialog } from "../../changes/ChangeDialog";
import { addActionToGroup, changeGroupPkps, removeGroup, renameGroup } from "../../changes/operations";
import { Absent } from "../../components/elements";
import { Picker, TextField } from "../../components/Field";
import { quoted, short } from "../../components/text";
import { pkpOptions } from "./GroupForm";

interface GroupProps {
  readonly group: Group;
  readonly onClose: () => void;
}
interface MembersProps extends GroupProps {
  readonly members: Members;
}

export function RenameGroup({ group, onClose }: GroupProps): ReactNode {
  return (
    <RenameDialog
      onClose={onClose}
      title="Rename the group"
      of={group}
      change={(strings) => renameGroup(group.id, group.name, strings)}
    />
  );
}

export function RemoveGroup({ group, onClose }: GroupProps): ReactNode {
  const navigate = useNavigate();
  return (
    <ChangeDialog
      onClose={onClose}
      title={`Remove ${quoted(group.name, `group ${group.id}`)}?`}
      about="Its permissions end at once. Its PKPs and actions stay in the account. A removed group cannot be restored."
      submit="Remove group"
      danger
      change={() => removeGroup(group.id, group.name)}
      onDone={() => navigate({ to: "/groups" })}
    />
  );
}

export function EditPkps({ group, members, onClose }: MembersProps): ReactNode {
  const pkps = usePkps();
  // Not what is read meanwhile: a PKP that somebody else adds is not taken out again.
  const [before] = useState(() => members.pkps.map(({ wallet_address }) => wallet_address));
  const [chosen, setChosen] = useState<readonly string[]>(before);
  const add = chosen.filter((one) => !before.includes(one));
  const isListed = (one: string): boolean => members.pkps.some(({ wallet_address }) => wallet_address === one);
  const remove = before.filter((one) => !chosen.includes(one) && isListed(one));
  return (
    <ChangeDialog
      onClose={onClose}
      title={`PKPs of ${quoted(group.name, "the group")}`}
      about="All changes are made in one transaction."
      submit="Save"
      ready={add.length + remove.length > 0}
      change={() => changeGroupPkps(group.id, group.name, add, remove)}
    >
      <Picker
        legend="PKPs"
        options={pkpOptions(pkps.items)}
        chosen={chosen}
        onChange={setChosen}
        empty={<Absent from={pkps}>There are no PKPs yet.</Absent>}
      />
    </ChangeDialog>
  );
}

export function ListAction({ group, members, onClose }: MembersProps): ReactNode {
  const actions = useActions();
  const listed = new Set(members.actions.map(({ hashed_cid }) => hashed_cid));
  const known = actions.items.filter(
    ({ hashed_cid, action_ipfs_cid }) => !listed.has(hashed_cid) && action_ipfs_cid !== undefined,
  );
  const [cid, setCid] = useState("");
  return (
    <ChangeDialog
      onClose={onClose}
      title={`List an action in ${quoted(group.name, "the group")}`}
      about="It may then use every PKP of the group."
      submit="List it"
      change={() => addActionToGroup(group.id, group.name, cid.trim())}
    >
      <Picker
        legend="Actions of the account"
        options={known.map(({ action_ipfs_cid: id = "", name }) => ({ id, label: name || short(id), hint: short(id) }))}
        chosen={cid === "" ? [] : [cid]}
        onChange={(chosen) => setCid(chosen.at(-1) ?? "")}
        empty={<Absent from={actions}>Every action whose code address is known is listed already.</Absent>}
      />
      <TextField label="Or by its CID" code value={cid} onChange={setCid} placeholder="Qm…" />
    </ChangeDialog>
  );
}
