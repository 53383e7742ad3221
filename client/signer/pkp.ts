/**
 * Signs with a PKP by running the standard actions, or actions that replace them. The response is untrusted text: the
 * caller verifies that the PKP signed the intended content.
 */
import { ClientError } from "../errors";
import type { Operations } from "../operations";
import { STANDARD_ACTIONS, type StandardAction } from "../standardActions";
import type { Input } from "../wire";
import { defined } from "../../protocol/defined";

/** The standard actions that return signatures. */
export type SigningAction = Exclude<StandardAction, "encrypt" | "decrypt">;

/**
 * Code that replaces a standard action, with the same parameters and response, for example a policy's; and its
 * additional parameters.
 */
export interface ActionInstead {
  readonly code: string;
  readonly params?: Readonly<Record<string, unknown>> | (() => Promise<Readonly<Record<string, unknown>>>);
}

export interface PkpOptions {
  /** Runs the actions: a client with a key that has `execute` in a group that lists the PKP and the actions used. */
  readonly client: Pick<Operations, "runAction">;
  /** The PKP's address. */
  readonly pkpId: string;
  /** Code that replaces a standard action. */
  readonly actions?: Readonly<Partial<Record<SigningAction, ActionInstead>>>;
  /** How long a run may take, in milliseconds; default: the service's limit. */
  readonly timeoutMs?: number;
}

/**
 * Runs the action and returns its response.
 * @throws ClientError `signing_failed` with the action's own error in `facts`; or the service's error for the run.
 */
export async function askPkp(
  { client, pkpId, actions, timeoutMs }: PkpOptions,
  name: SigningAction,
  params: Readonly<Record<string, unknown>>,
): Promise<`0x${string}`> {
  const instead = actions?.[name];
  const more = typeof instead?.params === "function" ? await instead.params() : (instead?.params ?? {});
  const js_params = { ...more, ...params, pkpId } as Input<"runAction">["js_params"];
  const run = await client.runAction({
    code: instead?.code ?? STANDARD_ACTIONS[name].code,
    js_params,
    pkp_id: pkpId,
    ...defined({ timeout_ms: timeoutMs }),
  });
  if (run.has_error) {
    const { code, message } = run.error ?? { code: "threw", message: "the action failed" };
    throw new ClientError("signing_failed", `The action did not sign: ${message}`, {
      facts: { run_error: code, action: name },
    });
  }
  if (typeof run.response !== "string" || !/^0x[0-9a-fA-F]+$/.test(run.response)) throw notSigned(name);
  return run.response as `0x${string}`;
}

/** The answer is not this PKP's signature over the requested content. */
export function notSigned(name: SigningAction): ClientError {
  return new ClientError("unexpected_answer", "What came back is not the PKP's signature over what was to be signed.", {
    facts: { action: name },
  });
}

/** Makes values JSON-safe: bigints as decimal text, bytes as hex. */
export function portable(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Uint8Array)
    return `0x${Array.from(value, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  if (Array.isArray(value)) return value.map(portable);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, part]) => (part === undefined ? [] : [[name, portable(part)]])),
  );
}

/** Decodes bytes that are valid UTF-8: signing text needs a narrower permission than signing bytes. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

interface TypeField {
  readonly name: string;
  readonly type: string;
}
type Types = Readonly<Record<string, readonly TypeField[]>>;

/** Only the types reachable from `primaryType`: some programs pass more, and unreachable types are not signed. */
export function typesOf(types: Types, primaryType: string): Record<string, TypeField[]> {
  const reached = new Map<string, TypeField[]>();
  const open = [primaryType];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const fields = types[name];
    if (fields === undefined || reached.has(name)) continue;
    reached.set(
      name,
      fields.map((field) => ({ name: field.name, type: field.type })),
    );
    open.push(...fields.map(({ type }) => type.replace(/\[.*$/, "")));
  }
  return Object.fromEntries(reached);
}
