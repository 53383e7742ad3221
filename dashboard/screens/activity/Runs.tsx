import { useMemo, useState, type ReactNode } from "react";
import type { Answer } from "../../../client";
import { useSigned } from "../../app/queries";
import { DataTable, type Column } from "../../parts/DataTable";
import { Pages } from "../../parts/Pages";
import { Badge, CopyButton, Empty, Notice, Spinner, When } from "../../parts/elements";
import { wordsOf } from "../../parts/failures";
import { Select } from "../../parts/Field";
import { dollars, duration, short } from "../../parts/text";
import { useNames, type Names } from "./names";

type Run = Answer<"listRuns">[number];
/** Searched and sorted as one. */
const PAGE = 1_000;

export function Runs(): ReactNode {
  const [key, setKey] = useState("");
  const [outcome, setOutcome] = useState<"" | "succeeded" | "threw" | "timed_out" | "permission_denied">("");
  const [page, setPage] = useState(0);
  const names = useNames();
  const { data, error, isLoading } = useSigned(`runs-${key}-${outcome}-${page}`, (client) =>
    client.listRuns({
      page_number: page,
      page_size: PAGE,
      ...(key === "" ? {} : { api_key_hash: key }),
      ...(outcome === "" ? {} : { outcome }),
    }),
  );
  const columns = useMemo(() => columnsOf(names), [names]);
  const isFiltered = key !== "" || outcome !== "";
  return (
    <section className="stack" aria-label="Runs">
      <div className="filters">
        <Select
          label="Key"
          value={key}
          options={[["", "All keys"], ...names.keyOptions]}
          onChange={(next) => (setKey(next), setPage(0))}
        />
        <Select
          label="Outcome"
          value={outcome}
          options={OUTCOMES}
          onChange={(next) => (setOutcome(next as typeof outcome), setPage(0))}
        />
      </div>
      {error !== null && <Notice kind="bad">{wordsOf(error)}</Notice>}
      {isLoading && <Spinner />}
      {data?.total === 0 && (
        <Empty title={isFiltered ? "No such runs" : "No runs yet"}>
          <p>
            {isFiltered
              ? "Nothing fits these filters."
              : "Run an action in the Runner, or from your program, and it appears here."}
          </p>
        </Empty>
      )}
      {data !== undefined && data.total > 0 && (
        <DataTable
          label="Runs"
          unit={["run", "runs"]}
          rows={data.items}
          total={data.total}
          columns={columns}
          idOf={({ request_id }) => request_id}
          textOf={(run) => `${run.request_id} ${run.action_ipfs_cid} ${run.outcome} ${names.key(run.api_key_hash)}`}
        />
      )}
      {data !== undefined && <Pages page={page} size={PAGE} total={data.total} onPage={setPage} />}
    </section>
  );
}

const OUTCOMES = [
  ["", "All outcomes"],
  ["succeeded", "Succeeded"],
  ["threw", "Threw an error"],
  ["timed_out", "Timed out"],
  ["permission_denied", "Not permitted"],
] as const;

const columnsOf = (names: Names): readonly Column<Run>[] => [
  {
    title: "When",
    width: "minmax(0, 1.1fr)",
    cell: ({ started_at }) => <When at={started_at * 1000} />,
    by: ({ started_at }) => started_at,
  },
  {
    title: "Action",
    width: "minmax(0, 1.1fr)",
    cell: ({ action_ipfs_cid: cid }) => <span title={cid}>{names.action(cid)}</span>,
    by: ({ action_ipfs_cid }) => names.action(action_ipfs_cid),
  },
  {
    title: "Key",
    width: "minmax(0, 1fr)",
    cell: ({ api_key_hash }) => names.key(api_key_hash),
    by: ({ api_key_hash }) => names.key(api_key_hash),
  },
  {
    title: "PKPs used",
    width: "minmax(0, 1fr)",
    cell: ({ pkps_used }) =>
      pkps_used.length === 0 ? <span className="soft">none</span> : pkps_used.map(names.pkp).join(", "),
  },
  {
    title: "Outcome",
    width: "minmax(0, 1fr)",
    cell: ({ outcome }) => (
      <Badge kind={outcome === "succeeded" ? "good" : "bad"}>{outcome.replaceAll("_", " ")}</Badge>
    ),
    by: ({ outcome }) => outcome,
  },
  {
    title: "Time",
    width: "4.5rem",
    end: true,
    cell: ({ duration_ms }) => <span className="number">{duration(duration_ms)}</span>,
    by: ({ duration_ms }) => duration_ms,
  },
  {
    title: "Price",
    width: "4rem",
    end: true,
    cell: ({ cost_cents }) => <span className="number">{dollars(cost_cents)}</span>,
    by: ({ cost_cents }) => cost_cents,
  },
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
