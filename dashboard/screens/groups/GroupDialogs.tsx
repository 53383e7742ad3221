/** The dialogs that change a group. */
import { useNavigate } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";
import { useActions, usePkps, type Group, type Members } from "../../app/queries";
import { useChanges } from "../../changes/ChangesProvider";
import { addActionToGroup, changeGroupPkps, removeGroup, renameGroup } from "../../changes/operations";
import { FormDialog } from "../../components/Dialog";
import { Picker, StringsFields, TextField, type Strings } from "../../components/Field";
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
  const { perform } = useChanges();
  const [strings, setStrings] = useState<Strings>(group);
  const { name, description } = strings;
  return (
    <FormDialog
      open
      onClose={onClose}
      title="Rename the group"
      submit="Save"
      onSubmit={async () =>
        (await perform(renameGroup(group.id, group.name, { name, description }))).state !== "cancelled"
      }
    >
      <StringsFields value={strings} onChange={setStrings} />
    </FormDialog>
  );
}

export function RemoveGroup({ group, onClose }: GroupProps): ReactNode {
  const { perform } = useChanges();
  const navigate = useNavigate();
  return (
    <FormDialog
      open
      onClose={onClose}
      title={`Remove ${quoted(group.name, `group ${group.id}`)}?`}
      about="Its permissions end at once. Its PKPs and actions stay in the account. A removed group cannot be restored."
      submit="Remove group"
      danger
      onSubmit={async () => {
        const { state } = await perform(removeGroup(group.id, group.name));
        if (state === "done") await navigate({ to: "/groups" });
        return state !== "cancelled";
      }}
    >
      {null}
    </FormDialog>
  );
}

export function EditPkps({ group, members, onClose }: MembersProps): ReactNode {
  const { perform } = useChanges();
  const { items } = usePkps();
  const before = members.pkps.map(({ wallet_address }) => wallet_address);
  const [chosen, setChosen] = useState<readonly string[]>(before);
  const add = chosen.filter((one) => !before.includes(one));
  const remove = before.filter((one) => !chosen.includes(one));
  return (
    <FormDialog
      open
      onClose={onClose}
      title={`PKPs of ${quoted(group.name, "the group")}`}
      about="All changes are made in one transaction."
      submit="Save"
      ready={add.length + remove.length > 0}
      onSubmit={async () => (await perform(changeGroupPkps(group.id, group.name, add, remove))).state !== "cancelled"}
    >
      <Picker
        legend="PKPs"
        options={pkpOptions(items)}
        chosen={chosen}
        onChange={setChosen}
        empty="There are no PKPs yet."
      />
    </FormDialog>
  );
}

export function ListAction({ group, members, onClose }: MembersProps): ReactNode {
  const { perform } = useChanges();
  const { items } = useActions();
  const listed = new Set(members.actions.map(({ hashed_cid }) => hashed_cid));
  const known = items.filter(
    ({ hashed_cid, action_ipfs_cid }) => !listed.has(hashed_cid) && action_ipfs_cid !== undefined,
  );
  const [cid, setCid] = useState("");
  return (
    <FormDialog
      open
      onClose={onClose}
      title={`List an action in ${quoted(group.name, "the group")}`}
      about="It may then use every PKP of the group."
      submit="List it"
      onSubmit={async () => (await perform(addActionToGroup(group.id, group.name, cid.trim()))).state !== "cancelled"}
    >
      <Picker
        legend="Actions of the account"
        options={known.map(({ action_ipfs_cid: id = "", name }) => ({ id, label: name || short(id), hint: short(id) }))}
        chosen={cid === "" ? [] : [cid]}
        onChange={(chosen) => setCid(chosen.at(-1) ?? "")}
        empty="Every action whose code address is known is listed already."
      />
      <TextField label="Or by its CID" code value={cid} onChange={setCid} placeholder="Qm…" />
    </FormDialog>
  );
}
