/** The builder's fields, and the policy they make. */
import { parseUnits } from "ethers";
import { makePolicy, type Policy } from "../../../client/policies";
import type { BudgetWindow } from "../../../protocol/budgetTerms";
import { ungrouped } from "../../components/text";
import { keepCode } from "../actions/codes";

export interface PolicyForm {
  readonly kind: "coin" | "token" | "function";
  readonly chain: string;
  readonly to: string;
  readonly amount: string;
  readonly token: string;
  readonly decimals: string;
  readonly signature: string;
  /** One rule a line: "any", "0xabc, 0xdef", "<= 100", "10 to 100". */
  readonly rules: string;
  /** The sum of all in a window; empty = not bounded. */
  readonly sum: string;
  readonly window: BudgetWindow;
  /** Number of the argument that counts, of a function. */
  readonly counted: string;
  readonly hours: string;
  readonly approvers: string;
  readonly threshold: string;
}

export const blankPolicy = (chain: number): PolicyForm => ({
  kind: "coin",
  chain: String(chain),
  to: "",
  amount: "",
  token: "",
  decimals: "18",
  signature: "",
  rules: "",
  sum: "",
  window: "day",
  counted: "2",
  hours: "",
  approvers: "",
  threshold: "1",
});

export const wordsIn = (text: string): string[] => text.split(/[\s,;]+/).filter((word) => word !== "");

/** @throws Error with a readable message when a field does not fit. */
export async function policyOf(form: PolicyForm): Promise<Policy> {
  const shared = { chain: form.chain.trim(), ...budgetsOf(form), ...hoursOf(form.hours), ...approversOf(form) };
  const policy = await make(form, shared);
  await keepCode(policy.code);
  return policy;
}

const TRANSFER = "transfer(address,uint256)";

type SharedFields = { readonly chain: string; readonly hours?: [number, number] };

function make(form: PolicyForm, shared: SharedFields): Promise<Policy> {
  if (form.kind === "coin")
    return makePolicy("transfer-limits", { ...shared, to: wordsIn(form.to), max: unitsOf(form.amount, 18) });
  const call =
    form.kind === "token"
      ? {
          to: form.token.trim(),
          function: TRANSFER,
          args: [{ in: wordsIn(form.to) }, { max: unitsOf(form.amount, Number(form.decimals)) }],
        }
      : {
          to: form.token.trim(),
          function: signatureOf(form),
          args: form.rules
            .split("\n")
            .filter((line) => line.trim() !== "")
            .map(ruleOf),
        };
  return makePolicy("contract-calls", { ...shared, calls: [call] });
}

/** "1,000.5" as the chain counts. */
export function unitsOf(text: string, decimals: number): string {
  const plain = ungrouped(text.trim());
  if (!/^\d+(\.\d+)?$/.test(plain)) throw new Error("The amount is no number: write it like 0.25 or 1,000.");
  try {
    return String(parseUnits(plain, decimals));
  } catch {
    throw new Error(`The amount has more than ${decimals} decimals.`);
  }
}

const signatureOf = ({ signature }: PolicyForm): string => signature.trim().replaceAll(" ", "");

/** What is counted, named so that it says in lists what it bounds. */
function budgetsOf(form: PolicyForm) {
  if (form.sum.trim() === "") return {};
  const { kind, window } = form;
  const what =
    kind === "coin"
      ? { amount: "value", limit: unitsOf(form.sum, 18) }
      : kind === "token"
        ? { amount: `${TRANSFER} 2`, limit: unitsOf(form.sum, Number(form.decimals)) }
        : { amount: `${signatureOf(form)} ${form.counted.trim()}`, limit: unitsOf(form.sum, 0) };
  return { budgets: [{ name: kind === "coin" ? "value" : kind, window, ...what }] };
}

function hoursOf(text: string): { readonly hours?: [number, number] } {
  if (text.trim() === "") return {};
  const [, from, to] = /^(\d{1,2})\s*(?:-|–|to)\s*(\d{1,2})$/.exec(text.trim()) ?? [];
  if (from === undefined || to === undefined) throw new Error("Hours are two numbers in UTC, like 8-18.");
  return { hours: [Number(from), Number(to)] };
}

function approversOf({ approvers, threshold }: PolicyForm) {
  const of = wordsIn(approvers);
  return of.length === 0 ? {} : { approvers: { of, threshold: Number(threshold) } };
}

function ruleOf(line: string): { in?: string[]; min?: string; max?: string } {
  const text = line.trim();
  if (/^any(thing)?$/i.test(text)) return {};
  const [, most] = /^(?:<=|≤|at most)\s*(\d+)$/i.exec(text) ?? [];
  if (most !== undefined) return { max: most };
  const [, min, max] = /^(-?\d+)\s*(?:to|–)\s*(-?\d+)$/i.exec(text) ?? [];
  if (min !== undefined && max !== undefined) return { min, max };
  return { in: wordsIn(text) };
}
