/**
 * The result of `work`; after `ms`, whatever `late` returns or throws. Nothing stops `work`: abort it in `late` where
 * that is possible.
 */
export async function within<T, L>(ms: number, work: Promise<T>, late: () => L): Promise<T | L> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const expired = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  }).then(late);
  return Promise.race([work, expired]).finally(() => clearTimeout(timer));
}

/** Rejects when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}
