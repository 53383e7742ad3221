/** What the account's actions have used of their budgets, as the chain counts it. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Answer } from "../../../client";
import { useSigned } from "../../app/queries";
import { Button } from "../../components/Button";
import { DataTable, nameColumn, timeColumn, valueColumn, type Column } from "../../components/DataTable";
import { PageHead } from "../../components/elements";
import { SafeNotice } from "../../components/SafeNotice";
import { short } from "../../components/text";

type Budget = Answer<"getBudgets">[number];
const PAGE = 200;
/** More are not worth a table. */
const MOST = 1_000;

export function Budgets(): ReactNode {
  const budgets = useSigned("budgets", async ({ getBudgets }) => {
    const found: Budget[] = [];
    for (let page = 0; ; page++) {
      const { items, total } = await getBudgets({ page_number: page, page_size: PAGE });
      found.push(...items);
      if (items.length === 0 || found.length >= Math.min(total, MOST)) return { found, total };
    }
  });
  const { data, isFetching, refetch } = budgets;
  return (
    <>
      <PageHead
        title="Budgets"
        about="What actions have signed away in this hour or day, counted on the chain before each signature."
      >
        {data !== undefined && (
          <Button onPress={() => void refetch()} busy={isFetching}>
            Read again
          </Button>
        )}
      </PageHead>
      <SafeNotice what="budgets" />
      <DataTable
        label="Budgets"
        unit={["budget", "budgets"]}
        from={budgets}
        rows={data?.found}
        total={data?.total}
        none={NO_BUDGETS}
        columns={COLUMNS}
        idOf={({ hashed_cid: action, name, window }) => `${action} ${window} ${name}`}
        textOf={({ action_ipfs_cid: cid, name }) => `${name} ${cid}`}
      />
    </>
  );
}

const NO_BUDGETS = [
  "No budgets yet",
  <>
    A budget bounds the sum of what code signs in an hour or a day. Make a <Link to="/policies">policy</Link> with one,
    or call <code>Actions.spend</code> in your own code.
  </>,
  "It appears here once something was spent.",
] as const;

/** Thousandths, without leaving whole numbers. */
const share = ({ used, limit }: Budget): number =>
  limit === "0" ? 1_000 : Number((BigInt(used) * 1_000n) / BigInt(limit));
const grouped = (amount: string): string => BigInt(amount).toLocaleString("en-US");

const COLUMNS: readonly Column<Budget>[] = [
  nameColumn("Budget", "minmax(8rem, 1fr)", ({ name }) => name),
  {
    title: "Action",
    width: "minmax(9rem, 1fr)",
    cell: ({ action_ipfs_cid: cid, hashed_cid: action }) => (
      <Link to="/actions/$action" params={{ action }} className="code" title={cid}>
        {short(cid)}
      </Link>
    ),
    by: ({ action_ipfs_cid: cid }) => cid,
  },
  {
    title: "Used",
    width: "minmax(14rem, 3fr)",
    cell: (budget) => <Used budget={budget} />,
    by: share,
  },
  valueColumn("In each", "5rem", ({ window }) => window),
  timeColumn("Starts again", "9rem", ({ window_end }) => window_end * 1_000),
];

function Used({ budget }: { readonly budget: Budget }): ReactNode {
  const { used, limit, name } = budget;
  const isSpent = BigInt(used) >= BigInt(limit);
  const part = Math.min(share(budget), 1_000);
  return (
    <div className="used">
      <span className="number">
        {grouped(used)} <span className="soft">of {grouped(limit)}</span>
      </span>
      <span
        className={`share ${isSpent ? "error" : ""}`}
        role="meter"
        aria-label={`Used of ${name}`}
        aria-valuemin={0}
        aria-valuemax={1_000}
        aria-valuenow={part}
      >
        <span style={{ width: `${part / 10}%` }} />
      </span>
    </div>
  );
}
