import { Link } from "@tanstack/react-router";
import { useMemo, useState, type ReactNode } from "react";
import { useActions, type Action } from "../../app/queries";
import { ChangeDialog, RenameDialog } from "../../changes/ChangeDialog";
import { removeAction, renameAction } from "../../changes/operations";
import { Button } from "../../components/Button";
import { useMay } from "../../session/may";
import { RowMenu } from "../../components/RowMenu";
import { DataTable, DESCRIPTION, type Column } from "../../components/DataTable";
import { Id, PageHead } from "../../components/elements";
import { quoted } from "../../components/text";
import { ANY_ACTION } from "../pkps/uses";
import { AddAction } from "./AddAction";

type Open = { readonly what: "rename" | "remove"; readonly action: Action } | { readonly what: "add" } | undefined;

export function Actions(): ReactNode {
  const actions = useActions();
  const [open, setOpen] = useState<Open>();
  const may = useMay();
  const columns = useMemo(() => columnsOf(may.all ? setOpen : undefined), [may.all]);
  const close = (): void => setOpen(undefined);
  return (
    <>
      <PageHead
        title="Actions"
        about={
          "JavaScript that the service runs next to your keys. An action is named by its code: changed code is " +
          "another action."
        }
      >
        {may.all && (
          <Button variant="primary" onPress={() => setOpen({ what: "add" })}>
            Add action
          </Button>
        )}
      </PageHead>
      <DataTable
        label="Actions"
        unit={["action", "actions"]}
        from={actions}
        rows={actions.items}
        total={actions.total}
        none={["No actions yet", "Paste code, or try something in the Runner and add it from there."]}
        columns={columns}
        idOf={({ id }) => id}
        textOf={({ name, description, hashed_cid, action_ipfs_cid }) =>
          `${name} ${description} ${hashed_cid} ${action_ipfs_cid ?? ""}`
        }
      />
      {open?.what === "add" && <AddAction onClose={close} />}
      {open?.what === "rename" && (
        <RenameDialog
          title="Rename the action"
          of={open.action}
          change={(strings) => renameAction(open.action.hashed_cid, open.action.name, strings)}
          onClose={close}
        />
      )}
      {open?.what === "remove" && <Remove action={open.action} onClose={close} />}
    </>
  );
}

const columnsOf = (onOpen: ((open: Open) => void) | undefined): readonly Column<Action>[] => [
  {
    title: "Name",
    width: "minmax(9rem, 1fr)",
    cell: ({ name, hashed_cid }) => (
      <Link className="name" to="/actions/$action" params={{ action: hashed_cid }}>
        {hashed_cid === ANY_ACTION ? "Any" : name || "Without a name"}
      </Link>
    ),
    by: ({ name }) => name,
  },
  {
    title: "Code",
    width: "minmax(11rem, 1fr)",
    cell: ({ action_ipfs_cid: cid, hashed_cid }) =>
      cid === undefined ? <Id value={hashed_cid} what="hash of the CID" /> : <Id value={cid} what="CID" />,
  },
  DESCRIPTION,
  {
    title: "",
    width: "8rem",
    end: true,
    cell: (action) =>
      onOpen !== undefined && (
        <div className="actions">
          <Button size="small" onPress={() => onOpen({ what: "rename", action })}>
            Rename
          </Button>
          <RowMenu
            of={action.name || "this action"}
            items={[{ name: "Remove", danger: true, onChoose: () => onOpen({ what: "remove", action }) }]}
          />
        </div>
      ),
  },
];

interface Props {
  readonly action: Action;
  readonly onClose: () => void;
}

function Remove({ action, onClose }: Props): ReactNode {
  return (
    <ChangeDialog
      onClose={onClose}
      title={`Remove ${quoted(action.name, "this action")}?`}
      about={
        "It is removed from the account and from every group that lists it, at once. It can no longer use their " +
        "PKPs."
      }
      submit="Remove action"
      danger
      change={() => removeAction(action.hashed_cid, action.name)}
    />
  );
}
