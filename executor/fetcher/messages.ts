/** Messages between keyholder and fetcher. The frames' payloads carry the bodies of requests and answers. */
import { z } from "zod";

const texts = z.array(z.string()).readonly();
export const configurationSchema = z.strictObject({
  /** Modules are only fetched below this URL. */
  moduleOrigin: z.string().optional(),
  /** Trustless gateways for code by CID, tried in order. */
  gateways: texts,
  /** A Kubo RPC for code by CID, tried after the gateways. */
  kuboRpcUrl: z.string().optional(),
  /** Key sets of identity providers: the only URLs that fetchJwks may fetch. */
  jwksUrls: texts,
  /** Hosts, or host:port, that guests may reach regardless of address and port. */
  allowHosts: texts,
  /** The same for webhooks. */
  webhookAllowHosts: texts.optional(),
  /** Ports guests and webhooks may be reached at. */
  ports: z.array(z.number().int()).readonly(),
  /** Name servers for guests' fetches, as address or address:port; default the system's. */
  dnsServers: texts.optional(),
  /** The user the fetcher becomes, when started by root. */
  uid: z.number().int().optional(),
  /** Files and sockets the fetcher must not be able to open, which a probe tests at start; set only for it. */
  secretPaths: texts.optional(),
});
export type Configuration = z.infer<typeof configurationSchema>;

const call = z.number().int().nonnegative();
const size = z.number().int().positive();

/** An HTTP request of a guest, with the headers as the guest set them; the fetcher drops those it sets itself. */
const guestRequestSchema = z.strictObject({
  url: z.string(),
  method: z.string(),
  headers: z.array(z.tuple([z.string(), z.string()])),
  redirect: z.enum(["follow", "error", "manual"]),
  /** Milliseconds for the whole exchange, redirects included. */
  timeoutMs: size,
  /** Cap on the response body after decompression. */
  maxBytes: size,
  /** A longer body is cut there instead of refused. */
  cut: z.boolean().optional(),
});

const ofRun = {
  run: z.number().int(),
  lookups: z.number().int(),
  /** Whose turn it takes where answers are read. */
  account: z.string(),
  isWebhook: z.boolean().optional(),
};

export const toFetcherSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("configure"), configuration: configurationSchema }),
  z.strictObject({ type: z.literal("guest"), call, request: guestRequestSchema, ...ofRun }),
  z.strictObject({ type: z.literal("check"), call, url: z.string(), ...ofRun }),
  /** The rest of the call's answer may be read. */
  z.strictObject({ type: z.literal("grown"), call }),
  z.strictObject({ type: z.literal("module"), call, url: z.string(), maxBytes: size }),
  z.strictObject({ type: z.literal("code"), call, cid: z.string(), maxBytes: size }),
  z.strictObject({ type: z.literal("jwks"), call, url: z.string() }),
  z.strictObject({ type: z.literal("cancel"), call }),
]);
export type ToFetcher = z.infer<typeof toFetcherSchema>;

const guestResponseSchema = z.strictObject({
  url: z.string(),
  redirected: z.boolean(),
  status: z.number().int(),
  statusText: z.string(),
  headers: z.array(z.tuple([z.string(), z.string()])),
});

export const fromFetcherSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("ready"), missing: z.array(z.string()).max(32) }),
  z.strictObject({ type: z.literal("done"), call, response: guestResponseSchema.optional() }),
  /** The call's answer is longer than what may be read without permission. */
  z.strictObject({ type: z.literal("grow"), call }),
  z.strictObject({
    type: z.literal("failed"),
    call,
    code: z.enum(["refused", "timed_out", "too_large", "limit_exceeded", "failed", "unavailable", "not_found"]),
    message: z.string(),
  }),
]);
export type FromFetcher = z.infer<typeof fromFetcherSchema>;
