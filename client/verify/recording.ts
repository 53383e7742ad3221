/** A service's evidence as a file, so that it can be verified later and without the service. For Node. */
import { z } from "zod";
import { defined } from "../../protocol/defined";
import { ClientError } from "../errors";
import { get, type Got } from "./http";
import type { Fetch } from "./material";

const answerSchema = z.strictObject({
  status: z.int(),
  body: z.base64(),
  /** DER of the certificate of the connection. */
  leaf: z.base64().optional(),
});

const recordingSchema = z.strictObject({
  version: z.literal(1),
  base_url: z.url(),
  /** Hex of the nonce that the quote covers. */
  nonce: z.string().regex(/^([0-9a-f]{2}){16,32}$/),
  /** By path and query. */
  answers: z.record(z.string(), answerSchema),
});
export type Recording = z.infer<typeof recordingSchema>;

/** @throws ClientError `invalid_argument` for anything that is no recording. */
export function recordingOf(value: unknown): Recording {
  const parsed = recordingSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new ClientError(
    "invalid_argument",
    `the recorded evidence has the wrong form at ${parsed.error.issues[0]?.path.join(".") || "top"}`,
  );
}

/** Fetches, and keeps every answer. */
export function recording(baseUrl: URL, nonce: Buffer): { readonly fetch: Fetch; readonly recorded: Recording } {
  const recorded: Recording = { version: 1, base_url: baseUrl.origin, nonce: nonce.toString("hex"), answers: {} };
  const fetch: Fetch = async (url, options) => {
    const { status, body, leaf } = await get(url, options);
    recorded.answers[pathOf(url)] = {
      status,
      body: body.toString("base64"),
      ...defined({ leaf: leaf?.toString("base64") }),
    };
    return { status, body, ...defined({ leaf }) };
  };
  return { fetch, recorded };
}

/** Answers from a recording only. */
export const replaying =
  ({ answers }: Recording): Fetch =>
  async (url): Promise<Got> => {
    const answer = answers[pathOf(url)];
    if (answer === undefined) throw new Error(`${url.pathname}: not in the recorded evidence`);
    const { status, body, leaf } = answer;
    return {
      status,
      body: Buffer.from(body, "base64"),
      ...defined({ leaf: leaf === undefined ? undefined : Buffer.from(leaf, "base64") }),
    };
  };

const pathOf = (url: URL): string => url.pathname + url.search;
