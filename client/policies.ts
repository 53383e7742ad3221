/**
 * `keywright/policies`: code that signs only what its parameters allow. Template and parameters are rendered
 * canonically, so that the same policy always has the same CID, and a group that lists it shows on chain what the PKP
 * may sign. Limits of policies: docs/policies.md.
 */
import canonicalize from "canonicalize";
import { z } from "zod";
import { cidOfCode } from "../protocol/cid";
import { ClientError } from "./errors";
import { POLICY_TEMPLATES } from "./policyTemplates";

const address = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, "must be 0x and 40 hex digits")
  .transform((text) => text.toLowerCase());
/** A whole number as decimal text. */
const amount = z
  .union([
    z.int().nonnegative().transform(String),
    z.string().regex(/^(0|[1-9][0-9]{0,77})$/, "must be a whole number"),
  ])
  .refine((text) => BigInt(text) < 2n ** 256n, "is too large");
const unique = <T extends z.ZodType<unknown, unknown>>(item: T) =>
  z.array(item).transform((list) => [...new Set(list)].sort() as z.output<T>[]);

/** Default: 0.01 of a coin with 18 decimals. */
const DEFAULT_MAX_FEE = "10000000000000000";

const shared = {
  /** Hours of the day in UTC: [from, to]. */
  hours: z
    .tuple([z.int().min(0).max(23), z.int().min(0).max(24)])
    .refine(([from, to]) => from !== to, "must be two different hours")
    .optional(),
  /** At least `threshold` of these must have signed the same content. */
  approvers: z
    .strictObject({ of: unique(address), threshold: z.int().min(1) })
    .refine(({ of, threshold }) => threshold <= of.length, "threshold is more than there are approvers")
    .optional(),
};
const transactions = {
  chain: amount.refine((text) => text !== "0", "must be the id of a chain"),
  maxFee: amount.default(DEFAULT_MAX_FEE),
  ...shared,
};

const text = z.string().refine((value) => value.isWellFormed(), "holds half a surrogate pair");
const rule = z
  .strictObject({
    in: unique(text.transform((value) => (/^0x[0-9a-fA-F]*$/.test(value) ? value.toLowerCase() : value))).optional(),
    min: amount.optional(),
    max: amount.optional(),
  })
  .transform((given) => Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)));
const identifier = z
  .string()
  .regex(/^[A-Za-z_$][A-Za-z0-9_$]*$/, "must be an identifier")
  .refine((name) => name !== "__proto__", "must be another name");
const typeName = z.string().regex(/^[A-Za-z_$][A-Za-z0-9_$]*(\[\d*\])*$/, "must be a type");

/** `transfer(address,uint256)`: canonical types, as used for selectors. */
const signature = z
  .string()
  .regex(
    /^[A-Za-z_$][A-Za-z0-9_$]*\(([a-z0-9[\],()]*)\)$/,
    "must be a function's signature, for example transfer(address,uint256)",
  );

export const POLICY_PARAMETERS = {
  /** Plain transfers: `to` these addresses, at most `max` wei each. */
  "transfer-limits": z.strictObject({
    ...transactions,
    to: unique(address).refine((list) => list.length > 0, "must name an address"),
    max: amount,
  }),
  /** Calls of these functions of these contracts; a rule for each argument, {} for any value. */
  "contract-calls": z.strictObject({
    ...transactions,
    calls: z
      .array(z.strictObject({ to: address, function: signature, args: z.array(rule), max: amount.default("0") }))
      .min(1, "must name a function"),
  }),
  /** Typed data of one type, for these domains; rules by the path of a field, array indexes left out. */
  "typed-data": z.strictObject({
    ...shared,
    domains: z
      .array(
        z
          .strictObject({
            name: text.optional(),
            version: text.optional(),
            chainId: amount.optional(),
            verifyingContract: address.optional(),
            salt: z
              .string()
              .regex(/^0x[0-9a-f]{64}$/)
              .optional(),
          })
          .refine((domain) => Object.keys(domain).length > 0, "must say something"),
      )
      .min(1, "must name a domain"),
    primaryType: identifier,
    types: z.record(identifier, z.array(z.strictObject({ name: identifier, type: typeName })).min(1)),
    fields: z.record(z.string().regex(/^[A-Za-z0-9_$.]+$/), rule).default({}),
  }),
} as const;

export type PolicyTemplate = keyof typeof POLICY_PARAMETERS;
export type PolicyParameters<Template extends PolicyTemplate> = z.input<(typeof POLICY_PARAMETERS)[Template]>;

export interface Policy {
  readonly template: PolicyTemplate;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly code: string;
  readonly cid: string;
}

/** @throws ClientError `invalid_argument` naming the invalid parameter. */
export async function makePolicy<Template extends PolicyTemplate>(
  template: Template,
  given: PolicyParameters<Template>,
): Promise<Policy> {
  const parsed = POLICY_PARAMETERS[template].safeParse(given);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new ClientError(
      "invalid_argument",
      `${template}: ${issue?.path.join(".") ?? ""} ${issue?.message ?? "is wrong"}`,
    );
  }
  const parameters = JSON.parse(canonicalize(parsed.data) ?? "{}") as Record<string, unknown>;
  consistent(template, parameters);
  const code =
    `// Keywright policy ${template}, version 1\nconst POLICY = ` +
    `${canonicalize(parameters) ?? "{}"};\n\n${POLICY_TEMPLATES.common}\n${POLICY_TEMPLATES[template]}`;
  return { template, parameters, code, cid: await cidOfCode(code) };
}

/** Checks beyond the schema: one rule per argument, and types that exist. */
function consistent(template: PolicyTemplate, parameters: Record<string, unknown>): void {
  if (template === "contract-calls") {
    for (const { function: called, args } of parameters["calls"] as { function: string; args: unknown[] }[])
      if (argumentsOf(called) !== args.length)
        throw new ClientError(
          "invalid_argument",
          `contract-calls: ${called} has ${argumentsOf(called)} arguments and ${args.length} rules.`,
        );
  }
  if (template === "typed-data") {
    const types = parameters["types"] as Record<string, { name: string; type: string }[]>;
    const first = parameters["primaryType"] as string;
    if (types[first] === undefined) throw new ClientError("invalid_argument", `typed-data: types lack ${first}.`);
    for (const path of Object.keys(parameters["fields"] as object))
      if (!leadsSomewhere(types, first, path.split(".")))
        throw new ClientError("invalid_argument", `typed-data: fields.${path} is no plain field of ${first}.`);
  }
}

/** Counts arguments by the commas outside inner brackets. */
function argumentsOf(called: string): number {
  const inner = called.slice(called.indexOf("(") + 1, -1);
  if (inner === "") return 0;
  let depth = 0;
  return [...inner].reduce((count, letter) => {
    depth += letter === "(" ? 1 : letter === ")" ? -1 : 0;
    return count + (letter === "," && depth === 0 ? 1 : 0);
  }, 1);
}

function leadsSomewhere(
  types: Record<string, { name: string; type: string }[]>,
  type: string,
  [name, ...rest]: string[],
): boolean {
  const field = types[type]?.find((one) => one.name === name);
  if (field === undefined) return false;
  const inner = field.type.replace(/(\[\d*\])+$/, "");
  return rest.length === 0 ? types[inner] === undefined : leadsSomewhere(types, inner, rest);
}

/** Reads a policy's code: returns its template and parameters if it is one of these templates, unchanged. */
export async function readPolicy(code: string): Promise<Policy | undefined> {
  const [, template, json] = /^\/\/ Keywright policy ([a-z-]+), version 1\nconst POLICY = (.*);\n/.exec(code) ?? [];
  if (template === undefined || json === undefined || !(template in POLICY_PARAMETERS)) return undefined;
  try {
    const policy = await makePolicy(template as PolicyTemplate, JSON.parse(json) as never);
    return policy.code === code ? policy : undefined;
  } catch {
    return undefined;
  }
}
