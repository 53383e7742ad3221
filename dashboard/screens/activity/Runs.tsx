import { Link } from "@tanstack/react-router";
import { useMemo, useState, type ReactNode } from "react";
import type { Answer } from "../../../client";
import { FURTHEST, readerOf, useSigned, type Records } from "../../app/queries";
import { Button } from "../../components/Button";
import { DataTable, numberColumn, valueColumn, type Column } from "../../components/DataTable";
import { Pages } from "../../components/Pages";
import { Badge, CopyButton, Empty, When } from "../../components/elements";
import { fieldOf, Select, TextField } from "../../components/Field";
import { dollars, duration, short } from "../../components/text";
import { saveFile } from "../../components/saveFile";
import { useSession } from "../../session/context";
import { useNames, type Names } from "./names";
import { OUTCOMES, outcomeText, outcomeWord } from "./outcomes";

type Run = Answer<"listRuns">[number];
/** Searched and sorted as one. */
const PAGE = 1_000;

interface Filter {
  readonly key: string;
  readonly action: string;
  readonly outcome: "" | Run["outcome"];
  /** Days of the reader's time zone; empty: no bound. */
  readonly from: string;
  readonly until: string;
}
const EVERYTHING: Filter = { key: "", action: "", outcome: "", from: "", until: "" };

const secondsOf = (day: string, time: string): number => Math.floor(new Date(`${day}T${time}`).getTime() / 1000);

const queryOf = ({ key, action, outcome, from, until }: Filter) => ({
  ...(key === "" ? {} : { api_key_hash: key }),
  ...(action === "" ? {} : { hashed_cid: action }),
  ...(outcome === "" ? {} : { outcome }),
  ...(from === "" ? {} : { from: secondsOf(from, "00:00:00") }),
  ...(until === "" ? {} : { until: secondsOf(until, "23:59:59") }),
});

export function Runs(): ReactNode {
  const session = useSession();
  const [filter, setFilter] = useState(EVERYTHING);
  const [page, setPage] = useState(0);
  const names = useNames();
  const query = queryOf(filter);
  const read = useSigned(`runs-${JSON.stringify(query)}-${page}`, (client) =>
    client.listRuns({ page_number: page, page_size: PAGE, ...query }),
  );
  const { data } = read;
  const columns = useMemo(() => columnsOf(names), [names]);
  // The service counts runs of a key, an action, an outcome; not those of a time.
  const isByTime = filter.from !== "" || filter.until !== "";
  const known = isByTime ? countOf(data?.items, page) : (data?.total ?? 0);
  const isFiltered = Object.keys(query).length > 0;
  const change = (part: Partial<Filter>): void => {
    setFilter({ ...filter, ...part });
    setPage(0);
  };
  return (
    <section className="stack" aria-label="Runs">
      <DataTable
        label="Runs"
        unit={known === Infinity ? ["run on this page", "runs on this page"] : ["run", "runs"]}
        from={read}
        rows={data?.items}
        total={known === Infinity ? undefined : known}
        filters={<Filters filter={filter} names={names} onChange={change} />}
        empty={<NoRuns isFiltered={isFiltered} isLater={page > 0} />}
        tools={
          <Button size="small" onPress={() => exportRuns(readerOf(session), query, names)}>
            Export CSV
          </Button>
        }
        columns={columns}
        idOf={({ request_id }) => request_id}
        textOf={(run) => `${run.request_id} ${run.action_ipfs_cid} ${run.outcome} ${names.key(run.api_key_hash)}`}
      />
      <Pages page={page} size={PAGE} total={reachable(known, page)} onPage={setPage} />
      {known > FURTHEST + PAGE && page * PAGE === FURTHEST && (
        <p className="soft small">Older runs: choose a day in Until.</p>
      )}
    </section>
  );
}

const NONE: readonly Run[] = [];

/** After a full page there may be more. */
const countOf = ({ length }: readonly Run[] = NONE, page: number): number =>
  length < PAGE ? page * PAGE + length : Infinity;

/** What has pages: as far as the service answers them, and this one, also while it is read or when it is empty. */
const reachable = (known: number, page: number): number => Math.max(Math.min(known, FURTHEST + PAGE), page * PAGE + 1);

function NoRuns({ isFiltered, isLater }: { readonly isFiltered: boolean; readonly isLater: boolean }): ReactNode {
  if (isLater) return <p className="soft">No older runs.</p>;
  return (
    <Empty title={isFiltered ? "No such runs" : "No runs yet"}>
      <p>
        {isFiltered
          ? "Nothing fits these filters."
          : "Run an action in the Runner, or from your program, and it appears here."}
      </p>
    </Empty>
  );
}

interface FiltersProps {
  readonly filter: Filter;
  readonly names: Names;
  readonly onChange: (part: Partial<Filter>) => void;
}

function Filters({ filter, names, onChange }: FiltersProps): ReactNode {
  const field = fieldOf(filter, onChange);
  const outcomes = [["", "All outcomes"], ...OUTCOMES.map((one) => [one, outcomeText(one)] as const)] as const;
  return (
    <div className="filters">
      <Select label="Key" options={[["", "All keys"], ...names.keyOptions]} {...field("key")} />
      <Select label="Action" options={[["", "All actions"], ...names.actionOptions]} {...field("action")} />
      <Select label="Outcome" options={outcomes} {...field("outcome")} />
      <TextField label="From" type="date" {...field("from")} />
      <TextField label="Until" type="date" {...field("until")} />
    </div>
  );
}

const EXPORTED_PAGES = 10;

/** The newest 10,000 runs that the filters let through. */
async function exportRuns(
  client: Pick<Records, "listRuns">,
  query: ReturnType<typeof queryOf>,
  names: Names,
): Promise<void> {
  const lines = ["started_at,request_id,action,cid,key,key_hash,outcome,duration_ms,cost_cents,pkps"];
  for (let page = 0; page < EXPORTED_PAGES; page += 1) {
    const { items } = await client.listRuns({ ...query, page_number: page, page_size: PAGE });
    lines.push(...items.map((run) => lineOf(run, names)));
    if (items.length < PAGE) break;
  }
  saveFile("runs.csv", `${lines.join("\r\n")}\r\n`, "text/csv");
}

const lineOf = (run: Run, names: Names): string =>
  [
    new Date(run.started_at * 1000).toISOString(),
    run.request_id,
    names.action(run.action_ipfs_cid),
    run.action_ipfs_cid,
    names.key(run.api_key_hash),
    run.api_key_hash,
    run.outcome,
    run.duration_ms,
    run.cost_cents,
    run.pkps_used.join(" "),
  ]
    .map(cellOf)
    .join(",");

/** Quoted; a name that begins like a formula is not one in a spreadsheet. */
function cellOf(value: string | number): string {
  const text = String(value).replaceAll('"', '""');
  return typeof value === "number" ? text : `"${/^[=+\-@\t\r]/.test(text) ? "'" : ""}${text}"`;
}

const columnsOf = (names: Names): readonly Column<Run>[] => [
  {
    title: "When",
    width: "minmax(0, 1.1fr)",
    cell: ({ started_at, request_id }) => (
      <Link to="/activity/$run" params={{ run: `${started_at}-${request_id}` }}>
        <When at={started_at * 1000} />
      </Link>
    ),
    by: ({ started_at }) => started_at,
  },
  {
    title: "Action",
    width: "minmax(0, 1.1fr)",
    cell: ({ action_ipfs_cid: cid }) => <span title={cid}>{names.action(cid)}</span>,
    by: ({ action_ipfs_cid }) => names.action(action_ipfs_cid),
  },
  valueColumn("Key", "minmax(0, 1fr)", ({ api_key_hash }) => names.key(api_key_hash)),
  {
    title: "PKPs used",
    width: "minmax(0, 1fr)",
    cell: ({ pkps_used }) =>
      pkps_used.length === 0 ? <span className="soft">none</span> : pkps_used.map(names.pkp).join(", "),
  },
  {
    title: "Outcome",
    width: "minmax(6.25rem, 1fr)",
    cell: ({ outcome }) => <Badge kind={outcome === "succeeded" ? "success" : "error"}>{outcomeWord(outcome)}</Badge>,
    by: ({ outcome }) => outcome,
  },
  numberColumn("Time", "4.5rem", ({ duration_ms }) => duration_ms, duration),
  numberColumn("Price", "4rem", ({ cost_cents }) => cost_cents, dollars),
  {
    title: "Request",
    width: "4rem",
    end: true,
    cell: ({ request_id: id }) => (
      <span className="copyable">
        <span className="phone-only soft code">{short(id)}</span>
        <CopyButton text={id} what="request id" />
      </span>
    ),
  },
];
