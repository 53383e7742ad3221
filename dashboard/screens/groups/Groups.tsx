import { Link } from "@tanstack/react-router";
import { useMemo, useState, type ReactNode } from "react";
import { useGroups, useUsageKeys, type Group, type UsageKey } from "../../app/queries";
import { Button } from "../../components/Button";
import { useMay } from "../../session/may";
import { DataTable, DESCRIPTION, numberColumn, type Column } from "../../components/DataTable";
import { PageHead } from "../../components/elements";
import { isLive, runsIn } from "../pkps/uses";
import { GroupForm } from "./GroupForm";

export function Groups(): ReactNode {
  const groups = useGroups();
  const { items: keys } = useUsageKeys();
  const may = useMay();
  const [creating, setCreating] = useState(false);
  const columns = useMemo(() => columnsOf(keys), [keys]);
  return (
    <>
      <PageHead
        title="Groups"
        about="Each group lets certain actions use certain PKPs. A key runs only in the groups you name for it."
      >
        {may.createGroups && (
          <Button variant="primary" onPress={() => setCreating(true)}>
            Create group
          </Button>
        )}
      </PageHead>
      <DataTable
        label="Groups"
        unit={["group", "groups"]}
        from={groups}
        rows={groups.items}
        total={groups.total}
        none={["No groups yet", "Without a group nothing may use a PKP. Make one that lists an action and a PKP."]}
        columns={columns}
        idOf={({ id }) => id}
        textOf={({ name, description, id }) => `${name} ${description} ${id}`}
      />
      {creating && <GroupForm onClose={() => setCreating(false)} />}
    </>
  );
}

const columnsOf = (keys: readonly UsageKey[]): readonly Column<Group>[] => [
  {
    title: "Name",
    width: "minmax(10rem, 1.2fr)",
    cell: ({ id, name }) => (
      <Link className="name" to="/groups/$group" params={{ group: id }}>
        {name || `Group ${id}`}
      </Link>
    ),
    by: ({ name }) => name,
  },
  DESCRIPTION,
  numberColumn("Actions", "5rem", ({ action_count }) => action_count),
  numberColumn("PKPs", "4rem", ({ pkp_count }) => pkp_count),
  numberColumn("Keys", "4rem", ({ id }) => keys.filter((key) => isLive(key) && runsIn(key, id)).length),
];
