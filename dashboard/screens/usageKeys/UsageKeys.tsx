import { useMemo, useState, type ReactNode } from "react";
import { useGroupNames, useGroups, useUsageKeys, type UsageKey } from "../../app/queries";
import { scopeSentences, type GroupNames } from "../../changes/scopes";
import { Button } from "../../components/Button";
import { useMay } from "../../session/may";
import { RowMenu } from "../../components/RowMenu";
import { DataTable, type Column } from "../../components/DataTable";
import { Badge, PageHead, When } from "../../components/elements";
import { day, dollars, short } from "../../components/text";
import { isLive } from "../pkps/uses";
import { KeyLimits } from "./KeyLimits";
import { RevokeAll, RevokeKey } from "./Revoke";
import { UsageKeyForm } from "./UsageKeyForm";

type Open =
  | { readonly editing: UsageKey }
  | { readonly limiting: UsageKey }
  | { readonly revoking: UsageKey }
  | "create"
  | undefined;

export function UsageKeys(): ReactNode {
  const keys = useUsageKeys();
  const { items: groups } = useGroups();
  const names = useGroupNames(groups);
  const [open, setOpen] = useState<Open>();
  const may = useMay();
  const columns = useMemo(() => columnsOf(names, may.all ? setOpen : undefined), [names, may.all]);
  return (
    <>
      <PageHead
        title="Usage keys"
        about={
          "Give each program a key of its own that may do what it needs and nothing else. Keep the account key to " +
          "yourself."
        }
      >
        {may.all && keys.items.length > 0 && <RevokeAll keys={keys.items} total={keys.total} />}
        {may.all && (
          <Button variant="primary" onPress={() => setOpen("create")}>
            Create usage key
          </Button>
        )}
      </PageHead>
      <DataTable
        label="Usage keys"
        unit={["key", "keys"]}
        from={keys}
        rows={keys.items}
        total={keys.total}
        none={[
          "No usage keys yet",
          "A usage key runs actions in the groups you name. It can expire, and have a spending cap and limits.",
        ]}
        columns={columns}
        idOf={({ id }) => id}
        textOf={({ name, description, id }) => `${name} ${description} ${id}`}
      />
      <Dialogs open={open} onClose={() => setOpen(undefined)} />
    </>
  );
}

function Dialogs({ open, onClose }: { readonly open: Open; readonly onClose: () => void }): ReactNode {
  if (open === undefined) return null;
  if (open === "create") return <UsageKeyForm onClose={onClose} />;
  if ("editing" in open) return <UsageKeyForm usageKey={open.editing} onClose={onClose} />;
  if ("limiting" in open) return <KeyLimits usageKey={open.limiting} onClose={onClose} />;
  return <RevokeKey usageKey={open.revoking} onClose={onClose} />;
}

const SOON_SECONDS = 7 * 86_400;

/** A key's expiry, with a warning when it is near. */
export function Expiry({ usageKey }: { readonly usageKey: UsageKey }): ReactNode {
  const at = Number(usageKey.expiration);
  if (at === 0) return <span className="soft">never</span>;
  if (!isLive(usageKey)) return <Badge kind="error">expired</Badge>;
  const text = day(at * 1000);
  return at < Date.now() / 1000 + SOON_SECONDS ? <Badge kind="warning">{text}</Badge> : text;
}

const columnsOf = (names: GroupNames, onOpen: ((open: Open) => void) | undefined): readonly Column<UsageKey>[] => [
  {
    title: "Name",
    width: "minmax(9rem, 1fr)",
    cell: ({ name, id }) => (
      <span className="name" title={id}>
        {name || short(id)}
      </span>
    ),
    by: ({ name }) => name,
  },
  {
    title: "May",
    width: "minmax(12rem, 2fr)",
    cell: (key) => (
      <span className="small">
        {scopeSentences({ ...key, expiration: "0", balance: "0" } as never, names).join(" ")}
      </span>
    ),
  },
  {
    title: "Expires",
    width: "8rem",
    cell: (key) => <Expiry usageKey={key} />,
    by: ({ expiration }) => (expiration === "0" ? Infinity : Number(expiration)),
  },
  {
    title: "Last used",
    width: "8.5rem",
    cell: ({ last_used_at: at }) => (at === undefined ? <span className="soft">–</span> : <When at={at * 1000} />),
    by: ({ last_used_at }) => last_used_at ?? 0,
  },
  {
    title: "Spent",
    width: "8rem",
    end: true,
    cell: (key) => <Spent usageKey={key} />,
    by: ({ spent_cents }) => spent_cents ?? 0,
  },
  {
    title: "",
    width: "7rem",
    end: true,
    cell: (key) =>
      onOpen !== undefined && (
        <div className="actions">
          <Button size="small" onPress={() => onOpen({ editing: key })}>
            Edit
          </Button>
          <RowMenu
            of={key.name || "this key"}
            items={[
              { name: "Limits", onChoose: () => onOpen({ limiting: key }) },
              { name: "Revoke", danger: true, onChoose: () => onOpen({ revoking: key }) },
            ]}
          />
        </div>
      ),
  },
];

function Spent({ usageKey: { spent_cents: spent, balance } }: { readonly usageKey: UsageKey }): ReactNode {
  const cap = balance === "0" ? "" : ` of ${dollars(Number(balance))}`;
  if (spent === undefined)
    return <span className="soft number">{cap === "" ? "–" : `cap ${dollars(Number(balance))}`}</span>;
  return (
    <span className="number">
      {dollars(spent)}
      <span className="soft">{cap}</span>
    </span>
  );
}
