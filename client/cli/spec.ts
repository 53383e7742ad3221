/**
 * The commands, made from the route table: every operation of the HTTP interface has one, with the fields of its
 * schemas as arguments and options. A route without an entry in WORDS becomes `keywright api <its-name>`, so that none
 * is missing.
 */
import { z } from "zod";
import { routeOf } from "../../protocol/http";
import { ALL_OPERATIONS, type OperationName } from "../operations";

export type FieldKind = "text" | "flag" | "list" | "json";

export interface Field {
  /** As on the wire. */
  readonly name: string;
  readonly kind: FieldKind;
  /** Given by position. */
  readonly positional: boolean;
  readonly required: boolean;
  readonly description: string;
  /** The option's words, without dashes. */
  readonly option: string;
}

/** The part of JSON Schema used here; the rest is passed on unchanged. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly [more: string]: unknown;
}

export interface CommandSpec {
  readonly name: OperationName;
  readonly words: readonly string[];
  readonly summary: string;
  readonly fields: readonly Field[];
  /** All fields of path, query and body as one object. */
  readonly schema: JsonSchema;
  readonly effect: boolean;
  readonly paged: boolean;
  readonly tag: string;
  /** The required authentication, as in the route table. */
  readonly auth: string;
  /** Members of the answer that are shown once. */
  readonly secrets: readonly string[];
}

/** Command words of the common operations. */
const WORDS: Readonly<Record<string, string>> = {
  newAccount: "account create",
  account: "account show",
  accountExists: "account exists",
  updateAccount: "account rename",
  transferOwnership: "account transfer",
  freezeAccount: "account freeze",
  unfreezeAccount: "account unfreeze",
  revokeAllUsageApiKeys: "key revoke-all",
  setWalletOps: "pkp set-ops",
  addUsageApiKey: "key create",
  updateUsageApiKey: "key update",
  updateUsageApiKeyMetadata: "key rename",
  removeUsageApiKey: "key revoke",
  listApiKeys: "key list",
  setUsageKeyLimits: "key set-limits",
  listUsageKeyLimits: "key limits",
  addGroup: "group create",
  removeGroup: "group delete",
  updateGroup: "group update",
  group: "group show",
  listGroups: "group list",
  addActionToGroup: "group add-action",
  removeActionFromGroup: "group remove-action",
  addPkpToGroup: "group add-pkp",
  removePkpFromGroup: "group remove-pkp",
  changeGroupActions: "group change-actions",
  changeGroupPkps: "group change-pkps",
  createWallet: "pkp create",
  updateWallet: "pkp rename",
  listWallets: "pkp list",
  listWalletsInGroup: "pkp list-in-group",
  addAction: "action add",
  deleteAction: "action delete",
  updateActionMetadata: "action rename",
  listActions: "action list",
  publicKeys: "pkp public-keys",
  createTrigger: "triggers create",
  listTriggers: "triggers list",
  getTrigger: "triggers show",
  updateTrigger: "triggers update",
  deleteTrigger: "triggers delete",
  listFirings: "triggers firings",
  runTrigger: "triggers run",
  listRuns: "runs list",
  explainExecution: "runs explain",
  usage: "billing usage",
  getBudgets: "budgets",
  events: "logs",
  balance: "billing balance",
  history: "billing history",
  stripeConfig: "billing config",
  createPaymentIntent: "billing pay",
  confirmPayment: "billing confirm",
  getNodeChainConfig: "service chain",
  getApiPayers: "service payers",
  getAdminApiPayer: "service admin-payer",
  limits: "service limits",
  listWebhooks: "webhooks list",
  createWebhook: "webhooks create",
  updateWebhook: "webhooks update",
  deleteWebhook: "webhooks delete",
  testWebhook: "webhooks test",
  webhookDeliveries: "webhooks deliveries",
  replayWebhook: "webhooks replay",
  version: "service version",
  submission: "service submission",
  health: "service health",
  ready: "service ready",
  info: "service info",
  attestation: "service attestation",
};

/** Commands defined by hand: `run` and `cid` take files, `export` makes as many requests as it needs. */
const BY_HAND: ReadonlySet<string> = new Set(["runAction", "getActionIpfsId", "exportHistory"]);

const kebab = (name: string): string =>
  name.replace(/_/g, "-").replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

export function commandSpecs(): CommandSpec[] {
  return ALL_OPERATIONS.filter((name) => !BY_HAND.has(name)).map(specOf);
}

export function specOf(name: OperationName): CommandSpec {
  const route = routeOf(name);
  const schema = inputSchema(name);
  const words = (WORDS[name] ?? `api ${kebab(name)}`).split(" ");
  const fields = fieldsOf(schema, words);
  const { summary, effect, tag, auth, secrets = [] } = route;
  return { name, words, summary, fields, schema, effect, paged: route.paged === true, tag, auth, secrets };
}

/** One JSON Schema over path parameters, query and body. */
export function inputSchema(name: OperationName): JsonSchema {
  const { params, query, body } = routeOf(name).request;
  const parts = [params, query, body].flatMap((part) => (part === undefined ? [] : [jsonSchemaOf(part)]));
  const properties = Object.assign({}, ...parts.map((part) => part.properties ?? {})) as Record<string, JsonSchema>;
  return {
    type: "object",
    properties,
    required: parts.flatMap((part) => part.required ?? []),
    additionalProperties: false,
  };
}

function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as JsonSchema;
  return simplified(rest) as JsonSchema;
}

/** Drops `anyOf` where the schema states its types: it adds nothing. */
function simplified(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(simplified);
  if (typeof value !== "object" || value === null) return value;
  const { anyOf, ...rest } = value as JsonSchema;
  const kept = rest.type === undefined && anyOf !== undefined ? { ...rest, anyOf } : rest;
  return Object.fromEntries(Object.entries(kept).map(([name, part]) => [name, simplified(part)]));
}

function fieldsOf(schema: JsonSchema, words: readonly string[]): Field[] {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).map(([name, part]) => {
    const kind = kindOf(part);
    const isText = /description$/.test(name);
    return {
      name,
      kind,
      // Required texts are positional, except descriptions, which may be long and are often empty.
      positional: required.has(name) && kind === "text" && !isText,
      required: required.has(name),
      description: part.description ?? "",
      option: optionOf(name, words),
    };
  });
}

/** Options of the program, which takes them wherever they stand. */
const OF_THE_PROGRAM: ReadonlySet<string> = new Set(["url", "profile", "json", "insecure", "idempotency-key"]);

/** `group_description` of `group create` is `--description`, `url` of `webhooks create` is `--webhook-url`. */
function optionOf(name: string, [noun = ""]: readonly string[]): string {
  const option = kebab(name.startsWith(`${noun}_`) ? name.slice(noun.length + 1) : name);
  return OF_THE_PROGRAM.has(option) ? `${noun.replace(/s$/, "")}-${option}` : option;
}

function kindOf({ type }: JsonSchema): FieldKind {
  const types = [type ?? []].flat();
  if (types.includes("boolean") && types.length === 1) return "flag";
  if (types.includes("array")) return "list";
  return types.includes("string") || types.includes("integer") || types.includes("number") ? "text" : "json";
}

/**
 * Converts parsed options to the operation's input: absent flags are false, absent lists empty, and absent required
 * descriptions the empty string.
 */
export function inputOf(
  { fields }: Pick<CommandSpec, "fields">,
  typed: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return Object.fromEntries(
    fields.flatMap(({ name, kind, required }) => {
      const value = typed[name];
      if (value !== undefined) return [[name, value]];
      return required ? [[name, { flag: false, list: [], text: "", json: {} }[kind]]] : [];
    }),
  );
}
