import type { ReactNode } from "react";
import type { Answer } from "../../../client";
import { useSigned } from "../../app/queries";
import { DataTable, timeColumn, type Column } from "../../components/DataTable";
import { Dialog } from "../../components/Dialog";
import { Badge } from "../../components/elements";
import { dollars, duration, quoted, short } from "../../components/text";
import type { Trigger } from "./stopped";

type Firing = Answer<"listFirings">[number];
const PAGE = 200;

export function Firings({ trigger, onClose }: { readonly trigger: Trigger; readonly onClose: () => void }): ReactNode {
  const firings = useSigned(`firings-${trigger.id}`, (client) =>
    client.listFirings({ id: trigger.id, page_size: PAGE }),
  );
  const title = `Firings of ${quoted(trigger.name, short(trigger.id))}`;
  return (
    <Dialog wide onClose={onClose} title={title} about={trigger.reason}>
      <DataTable
        label="Firings"
        unit={["firing", "firings"]}
        from={firings}
        rows={firings.data?.items}
        total={firings.data?.total}
        none={["It has not fired yet", "Each firing appears here with its outcome and price."]}
        columns={COLUMNS}
        idOf={({ id }) => id}
      />
    </Dialog>
  );
}

const COLUMNS: readonly Column<Firing>[] = [
  timeColumn("Due", "9rem", ({ due_at }) => due_at),
  { title: "By", width: "6rem", cell: ({ kind }) => (kind === "manual" ? "hand" : kind) },
  {
    title: "Outcome",
    width: "minmax(9rem, 1fr)",
    cell: ({ state, outcome, detail }) => (
      <span title={detail}>
        <Badge kind={outcome === "succeeded" ? "success" : state === "ended" ? "error" : "neutral"}>
          {outcome ?? state}
        </Badge>
      </span>
    ),
  },
  {
    title: "Took",
    width: "6rem",
    end: true,
    cell: ({ duration_ms: ms }) => (ms === undefined ? "–" : duration(ms)),
  },
  { title: "Price", width: "6rem", end: true, cell: ({ cost_cents: c }) => (c === undefined ? "–" : dollars(c)) },
];
