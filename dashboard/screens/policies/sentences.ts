/** What a policy signs, in plain sentences. */
import { formatEther } from "ethers";
import type { Policy } from "../../../client/policies";
import { listed, plural, short } from "../../components/text";

interface Budget {
  readonly name: string;
  readonly amount: string;
  readonly limit: string;
  readonly window: string;
}

export interface Shared {
  readonly budgets?: readonly Budget[];
  readonly hours?: readonly [number, number];
  readonly approvers?: { readonly of: readonly string[]; readonly threshold: number };
}
export interface Transfers extends Shared {
  readonly chain: string;
  readonly maxFee: string;
  readonly to: readonly string[];
  readonly max: string;
}
export interface Call {
  readonly to: string;
  readonly function: string;
  readonly args: readonly { readonly in?: readonly string[]; readonly min?: string; readonly max?: string }[];
  readonly max: string;
}

type Signable = Transfers & { readonly calls?: readonly Call[]; readonly primaryType?: string };

export function policySentences({ template, parameters }: Policy): string[] {
  const policy = parameters as unknown as Transfers & {
    readonly calls?: readonly Call[];
    readonly primaryType?: string;
  };
  const { budgets = [], hours, approvers } = policy;
  return [
    ...signed(template, policy),
    ...budgets.map((budget) => budgetSentence(template, budget)),
    ...(hours === undefined ? [] : [`Only from ${hours[0]} to ${hours[1]} h UTC.`]),
    ...(approvers === undefined
      ? []
      : [
          `Only with ${approvers.threshold} of ${plural(approvers.of.length, "approval")}, by ` +
            `${listed(approvers.of.map(short))}.`,
        ]),
    ...(template === "typed-data"
      ? []
      : [`The network fee of each is at most ${formatEther(policy.maxFee)} of the coin.`]),
  ];
}

/** `value` and `fee` are the coin's in a transaction; in typed data fields like any other, often of a token. */
function budgetSentence(template: Policy["template"], { name, amount, limit, window }: Budget): string {
  const isCoin = (amount === "value" || amount === "fee") && template !== "typed-data";
  const coins = amount === "fee" ? "of the coin in network fees" : "of the coin";
  const sum = isCoin ? `${formatEther(limit)} ${coins}` : `${limit} of ${amountText(amount)}`;
  return `In each ${window} together at most ${sum}, counted on the chain as “${name}”.`;
}

const amountText = (amount: string): string => {
  const [what = "", argument] = amount.split(" ");
  return argument === undefined ? what : `argument ${argument} of ${what}`;
};

function signed(template: Policy["template"], policy: Signable): string[] {
  if (template === "typed-data") return [`Signs typed data of the type ${policy.primaryType ?? ""}.`];
  if (template === "transfer-limits")
    return [
      `Signs transfers on chain ${policy.chain}, of at most ${formatEther(policy.max)} of the coin each, to ` +
        `${listed(policy.to.map(short))}.`,
    ];
  return (policy.calls ?? []).map((call) => {
    const rules = call.args.map((rule, at) => `argument ${at + 1} ${ruleTexts(rule)}`);
    const value = call.max === "0" ? "" : `, sending at most ${formatEther(call.max)} of the coin`;
    const what = `${call.function} of ${short(call.to)} on chain ${policy.chain}`;
    return `Signs ${what}${value}: ${listed(rules) || "no arguments"}.`;
  });
}

export function ruleTexts({ in: values, min, max }: Call["args"][number]): string {
  const parts = [
    ...(values === undefined
      ? []
      : [values.length === 1 ? short(values[0] ?? "") : `one of ${listed(values.map(short))}`]),
    ...(min === undefined ? [] : [`at least ${min}`]),
    ...(max === undefined ? [] : [`at most ${max}`]),
  ];
  return parts.length === 0 ? "anything" : parts.join(", ");
}
