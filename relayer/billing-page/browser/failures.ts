const TIMEOUT_MS = 30_000;

/** A failure in words for the person in front of the page. */
export class Failure extends Error {
  constructor(
    message: string,
    /** The service's error code; `unreachable` when there was no answer. */
    readonly code: string,
  ) {
    super(message);
  }
}

/** One request with a deadline; no answer is a failure in words, too. */
export async function reach(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch {
    throw new Failure("There was no answer. Nothing is paid twice: press again to carry on where it stopped.", "unreachable");
  }
}
