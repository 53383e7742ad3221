/** Usage by day, including days without usage. */
export interface Day {
  readonly day: string;
  readonly runs: number;
  readonly failed: number;
  /** Of runs and changes. */
  readonly cents: number;
}

const DAY_MS = 86_400_000;

export function daysOf(
  items: readonly { day: string; runs: number; failed: number; cost_cents: number; changes_cents: number }[],
  count: number,
  now = Date.now(),
): Day[] {
  const days = Array.from({ length: count }, (_, back) =>
    new Date(now - (count - 1 - back) * DAY_MS).toISOString().slice(0, 10),
  );
  return days.map((day) => {
    const found = items.filter((item) => item.day === day);
    const sum = (of: "runs" | "failed" | "cost_cents" | "changes_cents"): number =>
      found.reduce((total, item) => total + item[of], 0);
    return { day, runs: sum("runs"), failed: sum("failed"), cents: sum("cost_cents") + sum("changes_cents") };
  });
}
