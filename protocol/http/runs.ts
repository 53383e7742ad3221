/** Running an action. Source: specification §1 "Execution check", §4 "run action"; wire, row "run action". */
import { z } from "zod";
import { RUN_ERROR_CODES } from "../errors";
import { MAX_WALL_MS, RUN_LIMITS } from "../limits";
import { codeText } from "./actions";
import { boundedNumber, cents, cid, outJson, pkpReference, reject } from "./fields";
import { defineRoute } from "./route";

/** An object handed on as the client wrote it; `__proto__` is a member like any other and never set on anything. */
const params = z
  .custom<Record<string, unknown> | null>((value) => typeof value === "object" && !Array.isArray(value), {
    message: "must be an object or null",
    params: { shape: true },
  })
  .transform((value, ctx): string => {
    const text = JSON.stringify(value ?? {});
    if (Buffer.byteLength(text, "utf8") <= RUN_LIMITS.paramsBytes) return text;
    return reject(ctx, `must be at most ${RUN_LIMITS.paramsBytes} bytes of JSON`, { code: "params_too_large" });
  })
  .meta({ type: ["object", "null"], additionalProperties: true, description: "What `main` receives; absent or null = {}." });

const body = z
  .strictObject({
    code: codeText.optional(),
    action_ipfs_cid: cid.optional(),
    ipfs_id: cid.optional(),
    js_params: params.optional(),
    pkp_id: pkpReference.optional(),
    timeout_ms: boundedNumber(1, MAX_WALL_MS, "Lowers the wall time of this run, in ms.").optional(),
  })
  .check((ctx) => {
    const given = [ctx.value.code, ctx.value.action_ipfs_cid, ctx.value.ipfs_id].filter((one) => one !== undefined);
    if (given.length !== 1) reject(ctx as Parameters<typeof reject>[0], "exactly one of code, action_ipfs_cid and ipfs_id is needed", { shape: true });
  });

export const runResponse = z.strictObject({
  response: outJson.meta({
    description: "What the action returned or set; null when nothing.",
    type: ["object", "array", "string", "number", "boolean", "null"],
  }),
  logs: z.string(),
  has_error: z.boolean(),
  error: z.strictObject({ code: z.enum(RUN_ERROR_CODES), message: z.string(), stack: z.string().optional() }).optional(),
  usage: z.strictObject({ duration_ms: z.number().nonnegative(), limit_ms: z.number().positive(), cost_cents: cents }),
});

const runAction = defineRoute({
  method: "POST",
  path: "/run_action",
  aliases: [{ method: "POST", path: "/lit_action" }],
  tag: "Actions",
  summary: "Run an action with the account's or a usage key. An action that fails is no HTTP error: 200 with has_error.",
  auth: "anyKey",
  body: "code",
  request: { body },
  response: runResponse,
  errors: [
    "invalid_cid",
    "code_too_large",
    "params_too_large",
    "no_execute_scope",
    "action_not_permitted",
    "pkp_not_permitted",
    "unknown_pkp_number",
    "code_not_found",
    "code_unavailable",
    "queue_full",
    "already_ran",
  ],
  example: {
    body: { code: "async function main({ name }) { return `hello ${name}`; }", js_params: { name: "world" } },
    response: { response: "hello world", logs: "", has_error: false, usage: { duration_ms: 4, limit_ms: 60_000, cost_cents: 1 } },
  },
  price: "run",
  effect: true,
});

export const runRoutes = { runAction };
