/** Messages between keyholder and child. Messages of the child are validated: it may be compromised. */
import { z } from "zod";
import { RUN_ERROR_CODES } from "../../protocol/errors";
import { MAX_ERROR_CHARS, type RpcUrls, type RunLimits } from "./types";

/** Messages to the child. */
export type ToChild =
  | { type: "self-test"; secretPaths: string[] }
  /** The payload is the code, as UTF-8. */
  | { type: "run"; run: number; params: string; limits: RunLimits; rpcUrls?: RpcUrls }
  /** The payload is the answer as JSON text, or with `value`, which is that text, a fetched body or module. */
  | { type: "answer"; run: number; call: number; ok: true; value?: string }
  | { type: "answer"; run: number; call: number; ok: false; code: string; message: string };

const run = z.number().int().nonnegative();
/** Positive for the guest's calls, negative for the child's own. */
const call = z.number().int();

/** Messages from the child. */
export const fromChildSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("ready") }),
  z.strictObject({ type: z.literal("self-test"), missing: z.array(z.string()).max(32), held: z.number().int() }),
  /** The code is parsed and runs once its imports are loaded. Not sent again for code that the child has cached. */
  z.strictObject({ type: z.literal("parsed"), run, isCached: z.boolean() }),
  /** The payload is the text. */
  z.strictObject({ type: z.literal("log"), run }),
  /** The payload is the arguments as JSON text, or with `args`, which is that text, the body of a "fetch". */
  z.strictObject({ type: z.literal("op"), run, call, name: z.string().max(64), args: z.string().optional() }),
  /** The payload is the response as JSON text; empty when there is an error. */
  z.strictObject({
    type: z.literal("end"),
    run,
    /** JSON text. */
    signatures: z.string().optional(),
    error: z
      .strictObject({
        code: z.enum(RUN_ERROR_CODES),
        message: z.string().max(MAX_ERROR_CHARS),
        stack: z.string().max(MAX_ERROR_CHARS).optional(),
      })
      .optional(),
  }),
]);
export type FromChild = z.infer<typeof fromChildSchema>;
