/**
 * Runs `work` with a signal that is aborted with a TimeoutError after `ms`. Unlike AbortSignal.timeout, clears its
 * timer when the work is done earlier.
 */
export async function withinMs<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new DOMException(`no end within ${ms} ms`, "TimeoutError")), ms);
  try {
    return await work(late.signal);
  } finally {
    clearTimeout(timer);
  }
}
