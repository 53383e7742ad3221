import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useMemo, useState, type ReactNode } from "react";
import { USAGE_DAYS as DAYS, useAccount, useBalance, useUsage } from "../../app/queries";
import { Failure, Figure, PageHead, Spinner } from "../../components/elements";
import { wordsOf } from "../../components/failures";
import { dollars, plural } from "../../components/text";
import { useMay } from "../../session/may";
import { Attention } from "./Attention";
import { daysOf } from "./days";
import { Recent } from "./Recent";

const Chart = lazy(async () => ({ default: (await import("./Chart")).Chart }));
const FirstSignature = lazy(async () => ({ default: (await import("./FirstSignature")).FirstSignature }));
let hidden = false;

export function Overview(): ReactNode {
  const { data: account } = useAccount();
  const balance = useBalance();
  const usage = useUsage();
  const [isHidden, setHidden] = useState(hidden);
  const days = useMemo(() => daysOf(usage.data ?? [], DAYS), [usage.data]);
  const runs = days.reduce((sum, day) => sum + day.runs, 0);
  const [wasNew] = useState(
    () => account.wallet_count === 0 || account.group_count === 0 || account.usage_api_key_count === 0,
  );
  const may = useMay();
  const isNew = wasNew || account.wallet_count === 0 || account.group_count === 0;
  return (
    <>
      <PageHead title={account.name || "Overview"} about={account.description} />
      {isNew && may.all && !isHidden && (
        <Suspense fallback={<Spinner />}>
          <FirstSignature hasRun={runs > 0} onHide={() => setHidden((hidden = true))} />
        </Suspense>
      )}
      <Attention balanceCents={balance.data?.balance_cents} />
      <section className="card figures" aria-label="At a glance">
        <Figure
          label="Credit left"
          value={balance.data?.balance_display ?? "–"}
          hint={balance.error === null ? <Link to="/credit">See what it pays for</Link> : wordsOf(balance.error)}
        />
        <Count label="PKPs" count={account.wallet_count} to="/pkps" />
        <Count label="Groups" count={account.group_count} to="/groups" />
        <Count label="Actions" count={account.action_count} to="/actions" />
        <Count label="Usage keys" count={account.usage_api_key_count} to="/usage-keys" />
      </section>
      <Recent />
      <Failure error={usage.error} />
      {(usage.isLoading || days.some(({ runs: count, cents }) => count > 0 || cents > 0)) && (
        <section className="charts" aria-label="The last 30 days">
          <DayChart
            title="Runs by day"
            total={plural(runs, "run")}
            days={days}
            of="runs"
            loading={usage.isLoading}
            format={whole}
          />
          <DayChart
            title="Spending by day"
            total={dollars(days.reduce((sum, { cents }) => sum + cents, 0))}
            days={days}
            of="cents"
            loading={usage.isLoading}
            format={wholeCents}
          />
        </section>
      )}
    </>
  );
}

/** Axis ticks between whole numbers get no label. */
const wholeCents = (value: number): string => (Number.isInteger(value) ? dollars(value) : "");
const whole = (value: number): string => (Number.isInteger(value) ? value.toLocaleString("en-US") : "");

interface CountProps {
  readonly label: string;
  readonly count: number;
  readonly to: "/pkps" | "/groups" | "/actions" | "/usage-keys";
}
const Count = ({ label, count, to }: CountProps): ReactNode => (
  <Figure
    label={label}
    value={
      <Link to={to} aria-label={plural(count, label.replace(/s$/, ""), label)}>
        {count.toLocaleString("en-US")}
      </Link>
    }
  />
);

interface DayChartProps {
  readonly title: string;
  readonly total: string;
  readonly days: ReturnType<typeof daysOf>;
  readonly of: "runs" | "cents";
  readonly loading: boolean;
  readonly format: (value: number) => string;
}

function DayChart({ title, total, days, of, loading, format }: DayChartProps): ReactNode {
  const names = useMemo(() => days.map(({ day }) => day), [days]);
  const values = useMemo(() => days.map((day) => day[of]), [days, of]);
  const [at, setAt] = useState<number>();
  const pointed = at === undefined ? undefined : days[at];
  return (
    <figure className="card stack-s">
      <figcaption className="row-between">
        <h2>{title}</h2>
        <span className="soft number">{pointed === undefined ? total : `${pointed.day}: ${format(pointed[of])}`}</span>
      </figcaption>
      {loading ? (
        <Spinner />
      ) : (
        <Suspense fallback={<div className="chart" />}>
          <Chart
            days={names}
            values={values}
            label={`${title} over the last ${DAYS} days: ${total} in all`}
            format={format}
            onPoint={setAt}
          />
        </Suspense>
      )}
    </figure>
  );
}
