/**
 * What a policy would say to a transaction, without signing: the rules of policies/*.js, which are what counts, told
 * in this browser. Tests compare the two.
 */
import { id, Interface } from "ethers";
import type { Policy } from "../../../client/policies";
import { ruleTexts, type Call, type Shared, type Transfers } from "./sentences";

export interface Transaction {
  readonly to: string;
  /** Wei. */
  readonly value: bigint;
  readonly data: string;
  /** UTC. */
  readonly hour: number;
}

/** Why it would refuse; undefined if it would sign, given the approvals it asks for and what is left of its budgets. */
export function refusalOf(policy: Policy, transaction: Transaction): string | undefined {
  const { budgets = [] } = policy.parameters as Shared;
  const above = ({ amount, limit }: (typeof budgets)[number]): boolean => amountIn(amount, transaction) > BigInt(limit);
  return ruleRefusal(policy, transaction) ?? (budgets.some(above) ? "it alone is above a budget" : undefined);
}

/** "value", or `function argument`, which a call of another function does not have. */
function amountIn(amount: string, { value, data }: Transaction): bigint {
  if (amount === "value") return value;
  // The transaction typed here has no gas.
  if (amount === "fee") return 0n;
  const [called = "", number] = amount.split(" ");
  if (id(called).slice(0, 10) !== data.slice(0, 10)) return 0n;
  return BigInt(new Interface([`function ${called}`]).decodeFunctionData(called, data)[Number(number) - 1]);
}

function ruleRefusal({ template, parameters }: Policy, transaction: Transaction): string | undefined {
  const policy = parameters as unknown as Transfers & { readonly calls?: readonly Call[] };
  const { hours } = policy;
  if (hours !== undefined && !isWithin(hours, transaction.hour))
    return `it signs only from ${hours[0]} to ${hours[1]} h UTC`;
  const to = transaction.to.toLowerCase();
  if (template === "transfer-limits") {
    if (transaction.data !== "0x") return "it signs plain transfers, without data";
    if (!policy.to.includes(to)) return "this recipient is not on its list";
    return transaction.value > BigInt(policy.max) ? "the amount is above its limit" : undefined;
  }
  const selector = transaction.data.slice(0, 10);
  const call = policy.calls?.find((one) => one.to === to && id(one.function).slice(0, 10) === selector);
  if (call === undefined) return "this function of this contract is not on its list";
  if (transaction.value > BigInt(call.max)) return "the value sent along is above its limit";
  return argumentRefusal(call, transaction.data);
}

const isWithin = ([from, to]: readonly [number, number], hour: number): boolean =>
  from < to ? hour >= from && hour < to : hour >= from || hour < to;

function argumentRefusal(call: Call, data: string): string | undefined {
  const contract = new Interface([`function ${call.function}`]);
  const fragment = contract.getFunction(data.slice(0, 10));
  if (fragment === null) return "this function of this contract is not on its list";
  try {
    const values = contract.decodeFunctionData(fragment, data);
    if (contract.encodeFunctionData(fragment, values) !== data) return "the data is not in its canonical form";
    const broken = call.args.findIndex((rule, at) => !holds(rule, values[at], fragment.inputs[at]?.type ?? ""));
    return broken === -1 ? undefined : `argument ${broken + 1} is not ${ruleTexts(call.args[broken] ?? {})}`;
  } catch {
    return "the data is not in its canonical form";
  }
}

function holds(rule: Call["args"][number], value: unknown, type: string): boolean {
  if (Object.keys(rule).length === 0) return true;
  const text = type !== "string" && typeof value === "string" ? value.toLowerCase() : String(value);
  if (rule.in !== undefined && !rule.in.includes(text)) return false;
  if (rule.min !== undefined && BigInt(text) < BigInt(rule.min)) return false;
  return rule.max === undefined || BigInt(text) <= BigInt(rule.max);
}
