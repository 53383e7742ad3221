/** Runs `work` with a signal that is aborted after `ms`, with a TimeoutError. Unlike AbortSignal.timeout it leaves no timer behind when the work is done before. */
export async function withinMs<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new DOMException(`no end within ${ms} ms`, "TimeoutError")), ms);
  try {
    return await work(late.signal);
  } finally {
    clearTimeout(timer);
  }
}
