/**
 * `keywright/policies`: code that signs only what its parameters allow. Template and parameters are rendered
 * canonically, so that the same policy always has the same CID, and a group that lists it shows on chain what the PKP
 * may sign. Limits of policies: docs/policies.md.
 */
import canonicalize from "canonicalize";
import { id } from "ethers";
import { cidOfCode } from "../protocol/cid";
import { ClientError } from "./errors";
import { POLICY_PARAMETERS, type PolicyInputs } from "./policyParameters";
import { POLICY_TEMPLATES } from "./policyTemplates";
import { argumentTypes, isElementary, ruleFor, type Rule } from "./policyTypes";

export type PolicyTemplate = keyof PolicyInputs;
export type PolicyParameters<Template extends PolicyTemplate> = PolicyInputs[Template];

/** Of the templates' texts: another text is another CID. */
const VERSIONS: Readonly<Record<PolicyTemplate, number>> = {
  "transfer-limits": 3,
  "contract-calls": 4,
  "typed-data": 4,
};

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
  const text = canonicalize(consistent(template, parsed.data)) ?? "{}";
  const parameters = JSON.parse(text) as Record<string, unknown>;
  const code =
    `// Keywright policy ${template}, version ${VERSIONS[template]}\nconst POLICY = ` +
    `${text};\n\n${POLICY_TEMPLATES.common}\n${POLICY_TEMPLATES[template]}`;
  return { template, parameters, code, cid: await cidOfCode(code) };
}

type Types = Readonly<Record<string, readonly { readonly name: string; readonly type: string }[]>>;
/** Not what every object inherits: `constructor` is a type only where one has this name. */
const own = (types: Types, name: string): Types[string] | undefined =>
  Object.hasOwn(types, name) ? types[name] : undefined;
interface Call {
  readonly to: string;
  readonly function: string;
  readonly args: readonly Rule[];
}

/** Beyond the schema: one rule per argument, one entry per function, types that exist, rules that fit their types. */
function consistent(template: PolicyTemplate, parameters: Record<string, unknown>): Record<string, unknown> {
  const wrong = (why: string): never => {
    throw new ClientError("invalid_argument", `${template}: ${why}.`);
  };
  for (const { name, amount } of (parameters["budgets"] ?? []) as BudgetRule[])
    if (!isAmount(template, parameters, amount)) wrong(`budgets.${name} counts ${amount}, which is no unsigned number`);
  if (template === "contract-calls") return { ...parameters, calls: callsOf(parameters["calls"] as Call[], wrong) };
  if (template !== "typed-data") return parameters;
  const types = parameters["types"] as Types;
  const first = parameters["primaryType"] as string;
  requireTypes(types, first, wrong);
  const fields = Object.entries(parameters["fields"] as Record<string, Rule>).map(([path, rule]) => {
    const type = fieldType(types, first, path.split(".")) ?? wrong(`fields.${path} is no plain field of ${first}`);
    return [path, ruleFor(type, rule, (why) => wrong(`fields.${path} ${why}`))];
  });
  return { ...parameters, fields: Object.fromEntries(fields) as object };
}

interface BudgetRule {
  readonly name: string;
  readonly amount: string;
}

/** `value` or `fee` of a transaction; `transfer(address,uint256) 2` is an argument of a call; a path of typed data. */
function isAmount(template: PolicyTemplate, parameters: Record<string, unknown>, field: string): boolean {
  if (template === "typed-data") {
    const type = fieldType(parameters["types"] as Types, parameters["primaryType"] as string, field.split("."), true);
    return /^uint\d+$/.test(type ?? "");
  }
  if (field === "value" || field === "fee") return true;
  if (template === "transfer-limits") return false;
  const [called, number] = field.split(" ");
  const isListed = (parameters["calls"] as Call[]).some((call) => call.function === called);
  return isListed && /^uint\d+$/.test(argumentTypes(called ?? "")?.[Number(number) - 1] ?? "");
}

function callsOf(calls: readonly Call[], wrong: (why: string) => never): Call[] {
  const seen = new Set<string>();
  return calls.map((call) => {
    const types = argumentTypes(call.function) ?? [];
    if (types.length !== call.args.length)
      wrong(`${call.function} has ${types.length} arguments and ${call.args.length} rules`);
    const selected = `${call.to} ${id(call.function).slice(0, 10)}`;
    if (seen.has(selected)) wrong(`calls names ${call.function} of ${call.to} twice: only one entry can hold`);
    seen.add(selected);
    const ruleOf = (rule: Rule, i: number): Rule =>
      ruleFor(types[i] ?? "", rule, (why) => wrong(`argument ${i + 1} of ${call.function} ${why}`));
    return { ...call, args: call.args.map(ruleOf) };
  });
}

/** Types that wallets can hash: each field's type exists, each type is used, and none contains itself. */
function requireTypes(types: Types, first: string, wrong: (why: string) => never): void {
  if (own(types, first) === undefined) wrong(`types lack ${first}`);
  const used = new Set<string>();
  const visit = (name: string, above: readonly string[]): void => {
    if (isElementary(name)) wrong(`types.${name} has the name of a plain type`);
    if (name === "EIP712Domain") wrong("types.EIP712Domain is the domain's own type, which domains state");
    if (above.includes(name)) wrong(`types.${name} contains itself`);
    used.add(name);
    const fields = own(types, name) ?? [];
    if (new Set(fields.map((field) => field.name)).size < fields.length) wrong(`types.${name} names a field twice`);
    for (const field of fields) {
      const inner = withoutLists(field.type);
      if (own(types, inner) !== undefined) visit(inner, [...above, name]);
      else if (!isElementary(inner)) wrong(`types.${name}.${field.name} has the type ${inner}, which does not exist`);
    }
  };
  visit(first, []);
  const unused = Object.keys(types).find((name) => !used.has(name));
  if (unused !== undefined) wrong(`types.${unused} is not used by ${first}`);
}

const withoutLists = (type: string): string => type.replace(/(\[\d*\])+$/, "");

/** The plain type at this path, list indexes left out; `isOne`: of a field that no list contains. */
function fieldType(types: Types, type: string, [name, ...rest]: readonly string[], isOne = false): string | undefined {
  const field = own(types, type)?.find((one) => one.name === name);
  if (field === undefined) return undefined;
  const inner = isOne ? field.type : withoutLists(field.type);
  if (rest.length > 0) return fieldType(types, inner, rest, isOne);
  return own(types, inner) === undefined ? inner : undefined;
}

/** Reads a policy's code: returns its template and parameters if it is one of these templates, unchanged. */
export async function readPolicy(code: string): Promise<Policy | undefined> {
  const [, template, json] = /^\/\/ Keywright policy ([a-z-]+), version \d+\nconst POLICY = (.*);\n/.exec(code) ?? [];
  if (template === undefined || json === undefined || !(template in POLICY_PARAMETERS)) return undefined;
  try {
    const policy = await makePolicy(template as PolicyTemplate, JSON.parse(json) as never);
    return policy.code === code ? policy : undefined;
  } catch {
    return undefined;
  }
}
