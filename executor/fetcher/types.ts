/** What the keyholder may ask of the fetcher, the only process of the executor that talks to the outside. */

/** An HTTP request of a guest. Header names and values as the guest gave them; the fetcher drops what is ours to set. */
export interface GuestRequest {
  url: string;
  method: string;
  headers: [string, string][];
  redirect: "follow" | "error" | "manual";
  /** Milliseconds for the whole exchange, redirects included. */
  timeoutMs: number;
  /** Cap on the response body after decompression. */
  maxBytes: number;
}

export interface GuestFetchOptions {
  signal?: AbortSignal;
  /** The run that fetches: its names are looked up once each, and `lookups` of them at most. */
  run?: number;
  lookups?: number;
  /** Waited for before an answer is read beyond its first 256 KiB. */
  grow?: () => Promise<void>;
}

export interface GuestResponse {
  url: string;
  redirected: boolean;
  status: number;
  statusText: string;
  headers: [string, string][];
}

/** A request the fetcher refused or could not complete; the message is meant for the author of the action. */
export class FetchFailed extends Error {
  override readonly name = "FetchFailed";
  constructor(
    readonly code: "refused" | "timed_out" | "too_large" | "limit_exceeded" | "failed" | "unavailable" | "not_found",
    message: string,
  ) {
    super(message);
  }
}

export interface Fetcher {
  /** A guest's fetch: address rules, redirects, caps. Throws FetchFailed. */
  fetchGuest(request: GuestRequest, body: Buffer, options?: GuestFetchOptions): Promise<{ response: GuestResponse; body: Buffer }>;
  /** Whether a guest may reach the URL at all, before more is done for it. Throws FetchFailed. */
  checkGuest(url: string, options?: GuestFetchOptions): Promise<void>;
  /** The bytes of a module at a normalised URL below the configured module origin. The caller checks the hash. */
  fetchModule(url: string, maxBytes: number): Promise<Buffer>;
  /** Code by CIDv0 from the gateways or the Kubo RPC, CID recomputed here; the keyholder recomputes it again. */
  fetchCode(cid: string, maxBytes: number): Promise<Buffer>;
  /** The JSON text of a key set, at most 256 KiB. Only URLs of the fetcher's own configuration are fetched. */
  fetchJwks(url: string): Promise<string>;
  close(): Promise<void>;
}
