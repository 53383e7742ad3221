/** Messages between keyholder and fetcher. The frames' payloads carry the bodies of requests and answers. */
import { z } from "zod";

export const configurationSchema = z.strictObject({
  moduleOrigin: z.string().optional(),
  gateways: z.array(z.string()),
  kuboRpcUrl: z.string().optional(),
  jwksUrls: z.array(z.string()),
  allowHosts: z.array(z.string()),
  webhookAllowHosts: z.array(z.string()).optional(),
  ports: z.array(z.number().int()),
  dnsServers: z.array(z.string()).optional(),
  uid: z.number().int().optional(),
  /** Files and sockets the fetcher must not be able to open; set only for a probe. */
  secretPaths: z.array(z.string()).optional(),
});
export type Configuration = z.infer<typeof configurationSchema>;

const call = z.number().int().nonnegative();
const size = z.number().int().positive();

const guestRequestSchema = z.strictObject({
  url: z.string(),
  method: z.string(),
  headers: z.array(z.tuple([z.string(), z.string()])),
  redirect: z.enum(["follow", "error", "manual"]),
  timeoutMs: size,
  maxBytes: size,
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
