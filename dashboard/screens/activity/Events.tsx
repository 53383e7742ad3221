import { useMemo, useState, type ReactNode } from "react";
import type { Answer } from "../../../client";
import { useSigned, type Records } from "../../app/queries";
import { DataTable, type Column } from "../../parts/DataTable";
import { Empty, Id, Notice, Spinner } from "../../parts/bits";
import { explorerOf } from "../../parts/explorer";
import { wordsOf } from "../../parts/failures";
import { Select } from "../../parts/Field";
import { short } from "../../parts/text";
import { useSession } from "../../session/context";

type Event = Answer<"events">["events"][number];

export function Events(): ReactNode {
  const { config } = useSession();
  const [name, setName] = useState("");
  const { data = [], error, isLoading } = useSigned("events", everyEvent);
  const names = useMemo(() => [...new Set(data.map((event) => event.name))].sort(), [data]);
  const shown = useMemo(() => (name === "" ? data : data.filter((event) => event.name === name)), [data, name]);
  const columns = useMemo(() => columnsOf(config.chain_id), [config.chain_id]);
  return (
    <section className="stack" aria-label="Events">
      <div className="filters">
        <Select label="Event" value={name} options={[["", "All events"], ...names.map((one) => [one, inWords(one)] as const)]} onChange={setName} />
      </div>
      {error !== null && <Notice kind="bad">{wordsOf(error)}</Notice>}
      {isLoading && <Spinner />}
      {!isLoading && error === null && shown.length === 0 && (
        <Empty title="No events yet">
          <p>Each change of the account leaves one on the chain.</p>
        </Empty>
      )}
      {shown.length > 0 && (
        <DataTable
          label="Events"
          rows={shown}
          columns={columns}
          idOf={({ cursor }) => cursor}
          textOf={(event) => `${event.name} ${event.transaction_hash} ${JSON.stringify(event.args)}`}
        />
      )}
    </section>
  );
}

const PAGE = 1_000;
const MOST_PAGES = 20;

/** Newest first; an account with more than this is better served by the API's cursor. */
async function everyEvent(client: Pick<Records, "events">): Promise<readonly Event[]> {
  const all: Event[] = [];
  let after: string | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const { events, next } = await client.events({ limit: PAGE, ...(after === undefined ? {} : { after }) });
    all.push(...events);
    if (events.length < PAGE) break;
    after = next;
  }
  return all.reverse();
}

/** `PkpAddedToGroup` → `Pkp added to group`. */
const inWords = (name: string): string => name.replace(/(?<=[a-z])([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`).replace(/^Pkp/, "PKP");

const HIDDEN = new Set(["id", "accountApiKeyHash", "apiKeyHash", "actor", "accountId"]);

function detailsOf({ args }: Event): string {
  const parts = Object.entries(args).filter(([name, value]) => !HIDDEN.has(name) && value !== "" && !(Array.isArray(value) && value.length === 0));
  return parts.map(([name, value]) => `${name}: ${typeof value === "string" ? short(value) : JSON.stringify(value)}`).join(" · ");
}

const columnsOf = (chainId: number): readonly Column<Event>[] => [
  {
    title: "Event",
    width: "minmax(10rem, 1fr)",
    cell: ({ name, removed }) => <span className="name">{inWords(name) + (removed === true ? " (taken back)" : "")}</span>,
    by: ({ name }) => name,
  },
  { title: "Details", width: "minmax(12rem, 2.4fr)", cell: (event) => <span className="soft small anywhere">{detailsOf(event)}</span> },
  {
    title: "Block",
    width: "5rem",
    end: true,
    cell: ({ block_number }) => <span className="number">{block_number}</span>,
    by: ({ block_number }) => block_number,
  },
  {
    title: "Transaction",
    width: "11rem",
    cell: ({ transaction_hash: hash }) => <Id value={hash} what="transaction" href={explorerOf({ chain_id: chainId }, "tx", hash)} />,
  },
];
