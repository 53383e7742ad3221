/** Statistics of measurements, in the unit of the samples. */
export const rounded = (value: number, digits = 3): number => Number(value.toFixed(digits));

/** The sample below which this share of all lies; NaN without samples. */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return rounded(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN);
}
export const median = (samples: readonly number[]): number => quantile(samples, 0.5);
export const p99 = (samples: readonly number[]): number => quantile(samples, 0.99);

export interface Summary {
  readonly n: number;
  readonly median: number;
  readonly p10: number;
  readonly p90: number;
}
export const summary = (samples: readonly number[]): Summary => ({
  n: samples.length,
  median: median(samples),
  p10: quantile(samples, 0.1),
  p90: quantile(samples, 0.9),
});

/** Milliseconds `work` takes. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) / 1e6;
}
