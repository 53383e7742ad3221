import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState, type ReactNode } from "react";
import type { Answer } from "../../../client";
import { readAgain, useLimits, useSigned, useBalance, useUsage, useUsageKeys, readerOf } from "../../app/queries";
import { Button } from "../../components/Button";
import { DataTable, nameColumn, numberColumn, timeColumn, valueColumn, type Column } from "../../components/DataTable";
import { Pages } from "../../components/Pages";
import { Empty, Failure, Figure, Notice, PageHead, Spinner } from "../../components/elements";
import { codeOf, wordsOf } from "../../components/failures";
import { dollars, short } from "../../components/text";
import { useIsReadable, useSession } from "../../session/context";
import { AddFunds } from "./AddFunds";
import { resumePayment } from "./payment";

type Entry = Answer<"history">[number];

export function Credit(): ReactNode {
  const session = useSession();
  const queries = useQueryClient();
  const [adding, setAdding] = useState(false);
  const [notice, setNotice] = useState<string>();
  const reader = readerOf(session);
  const balance = useBalance();
  const refresh = (): Promise<void> => readAgain(queries, { queryKey: ["signed"] });
  useResumed(session.account.id, reader, (sentence) => {
    setNotice(sentence);
    void refresh();
  });
  const canPay = useIsReadable();
  return (
    <>
      <PageHead title="Credit" about="Runs and changes are paid from your credit. Reading is free.">
        {canPay && (
          <Button variant="primary" onPress={() => setAdding(true)}>
            Add funds
          </Button>
        )}
      </PageHead>
      {!canPay && (
        <Notice>
          A multisig's account pays with a usage key: sign in with one to see the credit and to add funds.
        </Notice>
      )}
      {notice !== undefined && <Notice kind="success">{notice}</Notice>}
      <section className="card figures" aria-label="Balance and prices">
        <Figure
          label="Balance"
          value={<span aria-label="Balance">{balance.data?.balance_display ?? "–"}</span>}
          hint={balance.error !== null ? wordsOf(balance.error) : held(balance.data?.reserved_cents)}
        />
        <Prices />
      </section>
      {canPay && <History />}
      {session.kind === "key" && <SpendingByKey />}
      {adding && (
        <AddFunds
          account={session.account.id}
          payments={reader}
          onClose={() => setAdding(false)}
          onPaid={(sentence) => {
            setNotice(sentence);
            void refresh();
          }}
        />
      )}
    </>
  );
}

const held = (cents = 0): string | undefined => (cents > 0 ? `${dollars(cents)} held for what is running` : undefined);

function Prices(): ReactNode {
  const { data } = useLimits();
  if (data === undefined) return <Spinner />;
  const { managementWriteCents, runSecondCents } = data.prices;
  return (
    <>
      <Figure label="A run" value={dollars(runSecondCents)} hint="for each second begun" />
      <Figure label="A change" value={dollars(managementWriteCents)} hint="of the account, its groups, PKPs or keys" />
    </>
  );
}

function useResumed(account: string, reader: ReturnType<typeof readerOf>, onResumed: (sentence: string) => void): void {
  const begun = useRef(false);
  useEffect(() => {
    if (begun.current) return;
    begun.current = true;
    void resumePayment(account, reader).then((sentence) => sentence !== undefined && onResumed(sentence));
  });
}

const KINDS: Readonly<Record<Entry["kind"], string>> = {
  signup_credit: "Signup credit",
  top_up: "Funds added",
  refund: "Refund",
  dispute: "Dispute",
  reversal: "Reversal",
  correction: "Correction",
  write: "Change",
  run: "Run",
};

const COLUMNS: readonly Column<Entry>[] = [
  timeColumn("When", "minmax(10rem, 1fr)", ({ created_at }) => created_at),
  valueColumn("What", "minmax(8rem, 1fr)", ({ kind }) => KINDS[kind]),
  { title: "Reference", width: "minmax(8rem, 2fr)", cell: (entry) => <Reference entry={entry} /> },
  numberColumn("Amount", "7rem", ({ amount_cents }) => amount_cents, dollars),
];

function Reference({ entry }: { readonly entry: Entry }): ReactNode {
  const { reference, receipt_url: receipt } = entry;
  return (
    <span className="row">
      <span className="code soft" title={reference}>
        {short(reference)}
      </span>
      {receipt !== undefined && (
        <a href={receipt} target="_blank" rel="noopener noreferrer">
          Receipt<span className="hidden-visually"> (opens in a new tab)</span>
        </a>
      )}
    </span>
  );
}

const PAGE = 50;

function History(): ReactNode {
  const [page, setPage] = useState(0);
  const { data, error } = useSigned(`history-${page}`, (client) =>
    client.history({ page_number: page, page_size: PAGE }),
  );
  return (
    <section className="stack" aria-label="History">
      <h2>History</h2>
      {error !== null && (
        <Notice>
          {codeOf(error) === "owner_only" ? "The history is shown to the account's owner only." : wordsOf(error)}
        </Notice>
      )}
      {data === undefined && error === null && <Spinner />}
      {data?.total === 0 && (
        <Empty title="No entries yet">
          <p>Payments and costs appear here.</p>
        </Empty>
      )}
      {data !== undefined && data.total > 0 && (
        <DataTable
          label="History"
          unit={["entry", "entries"]}
          rows={data.items}
          total={data.total}
          columns={COLUMNS}
          idOf={({ id }) => id}
          textOf={(entry) => `${KINDS[entry.kind]} ${entry.reference}`}
        />
      )}
      {data !== undefined && <Pages page={page} size={PAGE} total={data.total} onPage={setPage} />}
    </section>
  );
}

/** What each key cost in the last 30 days, the account's own included. */
function SpendingByKey(): ReactNode {
  const { account } = useSession();
  const { items } = useUsageKeys();
  const { data = [], error } = useUsage();
  const byKey = new Map<string, { runs: number; changes: number }>();
  for (const { api_key_hash: key, cost_cents, changes_cents } of data) {
    const { runs, changes } = byKey.get(key) ?? { runs: 0, changes: 0 };
    byKey.set(key, { runs: runs + cost_cents, changes: changes + changes_cents });
  }
  if (byKey.size === 0) return <Failure error={error} />;
  const nameOf = (id: string): string =>
    id === account.id
      ? account.managed
        ? "The account key"
        : "The owner"
      : items.find((key) => key.id === id)?.name || short(id);
  const capOf = (id: string): number => Number(items.find((key) => key.id === id)?.balance ?? 0);
  const spending = [...byKey]
    .map(([id, { runs, changes }]) => ({ id, name: nameOf(id), runs, changes, cap: capOf(id) }))
    .sort((one, other) => other.runs + other.changes - one.runs - one.changes);
  return (
    <section className="stack" aria-label="Spending by key">
      <h2>Spending by key, last 30 days</h2>
      <Failure error={error} />
      <DataTable
        label="Spending by key"
        unit={["key", "keys"]}
        rows={spending}
        columns={SPENDING}
        idOf={({ id }) => id}
      />
    </section>
  );
}

interface Spending {
  readonly id: string;
  readonly name: string;
  readonly runs: number;
  readonly changes: number;
  /** Over the life of the key; 0: none. */
  readonly cap: number;
}

const SPENDING: readonly Column<Spending>[] = [
  nameColumn("Key", "minmax(9rem, 1fr)", ({ name }) => name),
  numberColumn("Runs", "7rem", ({ runs }) => runs, dollars),
  numberColumn("Changes", "7rem", ({ changes }) => changes, dollars),
  numberColumn("Together", "7rem", ({ runs, changes }) => runs + changes, dollars),
  numberColumn(
    "Cap for life",
    "7rem",
    ({ cap }) => cap,
    (cap) => (cap === 0 ? "none" : dollars(cap)),
  ),
];
