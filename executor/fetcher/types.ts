/** The fetcher's interface for the keyholder. */
import type { FromFetcher, ToFetcher } from "./messages";

export type GuestRequest = Extract<ToFetcher, { type: "guest" }>["request"];
export type GuestResponse = NonNullable<Extract<FromFetcher, { type: "done" }>["response"]>;
export interface Exchanged {
  response: GuestResponse;
  body: Buffer;
}

export interface GuestFetchOptions {
  signal?: AbortSignal;
  /** The run that fetches: each of its names is resolved once, at most `lookups` names in all. */
  run?: number;
  lookups?: number;
  /** Answers of one account are read in turn with those of others. */
  account?: string;
  /** Awaited before more than the first 256 KiB of an answer are read. */
  grow?: () => Promise<void>;
}

/** The fetcher refused the request or could not complete it; the message is for the author of the action. */
export class FetchFailed extends Error {
  override readonly name = "FetchFailed";
  constructor(
    readonly code: Extract<FromFetcher, { type: "failed" }>["code"],
    message: string,
  ) {
    super(message);
  }
}

export interface Fetcher {
  /** A guest's fetch: address rules, redirects, caps. Throws FetchFailed. */
  fetchGuest(request: GuestRequest, body: Buffer, options?: GuestFetchOptions): Promise<Exchanged>;
  /** Checks whether a guest may reach the URL, before any work is done for it. Throws FetchFailed. */
  checkGuest(url: string, options?: GuestFetchOptions): Promise<void>;
  /** The bytes of a module at a normalised URL below the configured module origin. The caller checks the hash. */
  fetchModule(url: string, maxBytes: number, options?: { signal?: AbortSignal }): Promise<Buffer>;
  /**
   * Code by CIDv0 from the gateways or the Kubo RPC. The fetcher verifies the CID, and the keyholder verifies it again.
   */
  fetchCode(cid: string, maxBytes: number, options?: { signal?: AbortSignal }): Promise<Buffer>;
  /** The JSON text of a key set, at most 256 KiB. Only configured URLs are fetched. */
  fetchJwks(url: string): Promise<string>;
  close(): Promise<void>;
}

/** Requests of the service itself to hosts that accounts name. */
export interface WebhookFetcher {
  /** A message to a webhook, by the address rules for those; a longer answer is cut. Throws FetchFailed. */
  fetchWebhook(request: GuestRequest, body: Buffer, signal?: AbortSignal): Promise<Exchanged>;
  /** Checks whether a webhook may be at the URL. Throws FetchFailed. */
  checkWebhook(url: string): Promise<void>;
}
