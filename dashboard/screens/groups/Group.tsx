import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";
import {
  useAccount,
  useActions,
  useGroups,
  useMembers,
  usePkps,
  useUsageKeys,
  type Action,
  type Group as GroupItem,
  type Members,
} from "../../app/queries";
import { useChanges } from "../../changes/ChangesProvider";
import {
  addActionToGroup,
  changeGroupPkps,
  removeActionFromGroup,
  removeGroup,
  removePkpFromGroup,
  renameGroup,
} from "../../changes/operations";
import { Button } from "../../parts/Button";
import { FormDialog } from "../../parts/Dialog";
import { Badge, Empty, Notice, PageHead, Spinner } from "../../parts/bits";
import { wordsOf } from "../../parts/failures";
import { Picker, StringsFields, TextField, type Strings } from "../../parts/Field";
import { quoted, short } from "../../parts/text";
import { ANY_ACTION, ANY_PKP, usersOf } from "../pkps/uses";
import { pkpOptions } from "./GroupForm";

type Open = "rename" | "remove" | "pkps" | "action" | undefined;

export function Group(): ReactNode {
  const { group: id } = useParams({ from: "/groups/$group" });
  const groups = useGroups();
  const { data: members, error } = useMembers(id);
  const [open, setOpen] = useState<Open>();
  const group = groups.items.find((one) => one.id === id);
  if (group === undefined) return groups.isLoading ? <Spinner /> : <Gone />;
  return (
    <>
      <Link to="/groups">All groups</Link>
      <PageHead title={group.name || `Group ${id}`} about={group.description}>
        <Button onPress={() => setOpen("rename")}>Rename</Button>
        <Button look="danger" onPress={() => setOpen("remove")}>
          Remove group
        </Button>
      </PageHead>
      {error !== null && <Notice kind="bad">{wordsOf(error)}</Notice>}
      {members === undefined ? (
        error === null && <Spinner />
      ) : (
        <Matrix group={group} members={members} onOpen={setOpen} />
      )}
      <WhoMayRun groupId={id} />
      {open === "rename" && <Rename group={group} onClose={() => setOpen(undefined)} />}
      {open === "remove" && <Remove group={group} onClose={() => setOpen(undefined)} />}
      {open === "pkps" && members !== undefined && (
        <EditPkps group={group} members={members} onClose={() => setOpen(undefined)} />
      )}
      {open === "action" && members !== undefined && (
        <ListAction group={group} members={members} onClose={() => setOpen(undefined)} />
      )}
    </>
  );
}

function Gone(): ReactNode {
  return (
    <>
      <PageHead title="Group" />
      <Empty title="No such group">
        <p>It was removed, or never was in this account.</p>
      </Empty>
    </>
  );
}

interface Parts {
  readonly group: GroupItem;
  readonly members: Members;
}

/** Actions down, PKPs across: every pair with a tick is allowed. */
function Matrix({ group, members, onOpen }: Parts & { readonly onOpen: (open: Open) => void }): ReactNode {
  const { perform } = useChanges();
  const { pkps, actions } = members;
  const isWide =
    pkps.some(({ wallet_address }) => wallet_address === ANY_PKP) ||
    actions.some(({ hashed_cid }) => hashed_cid === ANY_ACTION);
  const dropPkp = (address: string): Promise<unknown> => perform(removePkpFromGroup(group.id, group.name, address));
  return (
    <section className="stack" aria-label="What may use what">
      <div className="row-between">
        <h2>What may use what</h2>
        <div className="row">
          <Button size="small" onPress={() => onOpen("action")}>
            List an action
          </Button>
          <Button size="small" onPress={() => onOpen("pkps")}>
            Choose PKPs
          </Button>
        </div>
      </div>
      {isWide && (
        <Notice kind="warn">
          This group lists anything: any {actions.some(({ hashed_cid }) => hashed_cid === ANY_ACTION) ? "code" : "PKP"}.
          Whoever may run in it is limited by nothing else.
        </Notice>
      )}
      {pkps.length + actions.length === 0 ? (
        <Empty title="An empty group allows nothing">
          <p>List at least one action and one PKP.</p>
        </Empty>
      ) : (
        <div className="card scroll-x" tabIndex={0} role="region" aria-label="Matrix of actions and PKPs">
          <table className="plain-table matrix">
            <thead>
              <tr>
                <th scope="col">Action</th>
                {pkps.map((pkp) => (
                  <th scope="col" key={pkp.wallet_address}>
                    <span className="name">{pkp.name || short(pkp.wallet_address)}</span>
                    <Button size="small" look="quiet" onPress={() => dropPkp(pkp.wallet_address)}>
                      Remove
                      <span className="hidden-visually"> {pkp.name || short(pkp.wallet_address)} from the group</span>
                    </Button>
                  </th>
                ))}
                {pkps.length === 0 && <th scope="col">no PKP listed</th>}
              </tr>
            </thead>
            <tbody>
              {actions.map((action) => (
                <MatrixRow key={action.hashed_cid} action={action} group={group} columns={pkps.length} />
              ))}
              {actions.length === 0 && (
                <tr>
                  <td className="soft">no action listed</td>
                </tr>
              )}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function MatrixRow({
  action,
  group,
  columns,
}: {
  readonly action: Action;
  readonly group: GroupItem;
  readonly columns: number;
}): ReactNode {
  const { perform } = useChanges();
  const name =
    action.hashed_cid === ANY_ACTION ? "Any code" : action.name || short(action.action_ipfs_cid ?? action.hashed_cid);
  return (
    <tr>
      <th scope="row">
        <span className="name">{name}</span>
        {action.hashed_cid !== ANY_ACTION && (
          <div className="code small soft">{short(action.action_ipfs_cid ?? action.hashed_cid)}</div>
        )}
        <Button
          size="small"
          look="quiet"
          onPress={() => perform(removeActionFromGroup(group.id, group.name, action.hashed_cid, name))}
        >
          Remove<span className="hidden-visually"> {name} from the group</span>
        </Button>
      </th>
      {Array.from({ length: columns }, (_, at) => (
        <td key={at}>
          <span className="tick">✓ may use</span>
        </td>
      ))}
    </tr>
  );
}

function WhoMayRun({ groupId }: { readonly groupId: string }): ReactNode {
  const { data: account } = useAccount();
  const { items } = useUsageKeys();
  const who = usersOf(groupId, items, account.managed ? { id: account.id, name: "the account key" } : undefined);
  return (
    <section className="stack" aria-label="Who may run in it">
      <h2>Who may run in it</h2>
      {who.length === 0 ? (
        <p className="soft">No key yet. Give one the permission when you create it.</p>
      ) : (
        <ul className="row">
          {who.map(({ id, name, key }) => (
            <li key={id}>
              <Badge kind={key === undefined ? "plain" : "good"}>{name}</Badge>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Rename({ group, onClose }: { readonly group: GroupItem; readonly onClose: () => void }): ReactNode {
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

function Remove({ group, onClose }: { readonly group: GroupItem; readonly onClose: () => void }): ReactNode {
  const { perform } = useChanges();
  const navigate = useNavigate();
  return (
    <FormDialog
      open
      onClose={onClose}
      title={`Remove ${quoted(group.name, `group ${group.id}`)}?`}
      about="What it allowed ends at once. Its PKPs and actions stay in the account. A removed group does not come back."
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

function EditPkps({ group, members, onClose }: Parts & { readonly onClose: () => void }): ReactNode {
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

function ListAction({ group, members, onClose }: Parts & { readonly onClose: () => void }): ReactNode {
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
