import { useMemo, useState, type ReactNode } from "react";
import { useSigned, type Records } from "../../app/queries";
import { DataTable, numberColumn, type Column } from "../../components/DataTable";
import { Transaction } from "../../components/explorer";
import { Select } from "../../components/Field";
import { useSession } from "../../session/context";
import type { ChainConfig } from "../../session/types";
import { eventDetails, eventKind, eventName, type ContractEvent } from "./eventText";
import { useNames, type Names } from "./names";
import { defined } from "../../../protocol/defined";

const NONE: readonly ContractEvent[] = [];

export function Events(): ReactNode {
  const { config } = useSession();
  const [name, setName] = useState("");
  const events = useSigned("events", everyEvent);
  const { data = NONE } = events;
  const names = useMemo(() => [...new Set(data.map(eventKind))].sort(), [data]);
  const shown = useMemo(() => (name === "" ? data : data.filter((event) => eventKind(event) === name)), [data, name]);
  const told = useNames();
  const columns = useMemo(() => columnsOf(config, told), [config, told]);
  return (
    <section className="stack" aria-label="Events">
      <DataTable
        label="Events"
        unit={["event", "events"]}
        from={events}
        rows={shown}
        columns={columns}
        filters={
          <div className="filters">
            <Select
              label="Event"
              value={name}
              options={[["", "All events"], ...names.map((one) => [one, eventName(one)] as const)]}
              onChange={setName}
            />
          </div>
        }
        none={["No events yet", "Each change of the account emits an event on chain."]}
        idOf={({ cursor }) => cursor}
        textOf={(event) =>
          `${eventName(eventKind(event))} ${eventDetails(event, told)} ${event.transaction_hash} ` +
          `${JSON.stringify(event.args)}`
        }
      />
    </section>
  );
}

const PAGE = 1_000;
const MAX_PAGES = 20;

/** The newest, up to a limit; more of them through the API. */
async function everyEvent(client: Pick<Records, "events">): Promise<readonly ContractEvent[]> {
  const all: ContractEvent[] = [];
  let after: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { events, next } = await client.events({ limit: PAGE, order: "newest", ...defined({ after }) });
    all.push(...events);
    // Large events make pages shorter.
    if (events.length === 0) break;
    after = next;
  }
  return all;
}

const columnsOf = (chain: ChainConfig, names: Names): readonly Column<ContractEvent>[] => [
  {
    title: "Event",
    width: "minmax(10rem, 1fr)",
    cell: (event) => (
      <span className="name">{eventName(eventKind(event)) + (event.removed === true ? " (taken back)" : "")}</span>
    ),
    by: (event) => eventName(eventKind(event)),
  },
  {
    title: "Details",
    width: "minmax(12rem, 2.4fr)",
    cell: (event) => <span className="soft small anywhere">{eventDetails(event, names)}</span>,
  },
  numberColumn("Block", "5rem", ({ block_number }) => block_number),
  {
    title: "Transaction",
    width: "11rem",
    cell: ({ transaction_hash: hash }) => <Transaction hash={hash} chain={chain} />,
  },
];
