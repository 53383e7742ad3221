/** `keywright policy`: makes a policy's code and CID from its parameters, and reads the policy from a file of code. */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { InvalidArgumentError, type Command } from "commander";
import type * as Policies from "../policies";
import type { Policy, PolicyParameters, PolicyTemplate } from "../policies";
import type { Context } from "./context";
import { WrongUse } from "../errors";
import { EXIT, Ended } from "./failure";
import { paramsOf, readText } from "./run";
import { defined } from "../../protocol/defined";

interface Shared {
  readonly out?: string;
  readonly hours?: [number, number];
  readonly approvers?: string[];
  readonly threshold?: string;
}
type Budget = NonNullable<PolicyParameters<"transfer-limits">["budgets"]>[number];
interface TransferOptions extends Shared {
  readonly chain: string;
  readonly to: string[];
  readonly max: string;
  readonly maxFee?: string;
  readonly perHour?: string;
  readonly perDay?: string;
  readonly feesPerDay?: string;
}

export function addPolicy(program: Command, context: Context): void {
  const policy = program
    .command("policy")
    .description("code that signs only what its parameters allow: the CID is the policy");
  shared(policy.command("transfer-limits").description("plain transfers to the listed addresses, up to a maximum each"))
    .requiredOption("--chain <id>", "the chain")
    .requiredOption("--to <address...>", "who may be paid")
    .requiredOption("--max <wei>", "maximum of one transaction")
    .option("--max-fee <wei>", "maximum gas cost of one transaction; default: 0.01 of the coin")
    .option("--per-hour <wei>", "maximum of all transactions of an hour")
    .option("--per-day <wei>", "maximum of all transactions of a day")
    .option("--fees-per-day <wei>", "maximum gas cost of all transactions of a day")
    .action(({ chain, to, max, maxFee, perHour, perDay, feesPerDay, ...more }: TransferOptions) => {
      const budgets = [
        ...budgetOf("value", "hour", perHour),
        ...budgetOf("value", "day", perDay),
        ...budgetOf("fee", "day", feesPerDay),
      ];
      const budgeted = budgets.length === 0 ? {} : { budgets };
      const parameters = { chain, to, max, ...defined({ maxFee }), ...budgeted, ...sharedParameters(more) };
      return make(context, "transfer-limits", parameters, more);
    });
  for (const template of ["contract-calls", "typed-data"] as const) {
    policy
      .command(template)
      .description(
        `${template === "contract-calls" ? "calls of the functions listed" : "typed data of one type"}; ` +
          "parameters as docs/policies.md shows them",
      )
      .option("--params <json>", "the parameters")
      .option("--params-file <file>", "the same, from a file")
      .option("--out <file>", "file for the code; default: standard output")
      .action((options: { params?: string; paramsFile?: string; out?: string }) =>
        make(context, template, paramsOf(context, options) as never, options),
      );
  }
  policy
    .command("show")
    .description("the parameters of a policy's code; exit code 1 unless it is an unchanged policy of these templates")
    .argument("<file>")
    .action(async (file: string) => {
      const { readPolicy } = require("../policies") as typeof Policies;
      const found = await readPolicy(readText(context, file));
      if (found === undefined) {
        context.io.err(`${file} is not an unchanged policy of these templates.\n`);
        throw new Ended(EXIT.refused);
      }
      const { template, parameters, cid } = found;
      const budgets = ((parameters["budgets"] ?? []) as Budget[]).map(
        ({ name, amount, limit, window }) => `${name}: the sum of ${amount} is at most ${limit} in each ${window}`,
      );
      context.print({ template, cid, parameters, ...(budgets.length === 0 ? {} : { budgets }) });
    });
}

const budgetOf = (amount: string, window: "hour" | "day", limit: string | undefined): readonly Budget[] =>
  limit === undefined ? [] : [{ name: amount, amount, limit, window }];

const shared = (command: Command): Command =>
  command
    .option("--hours <from-to>", "hours of the day in UTC, for example 9-17", hoursOf)
    .option("--approvers <address...>", "who may approve")
    .option("--threshold <count>", "how many of them must; default: all")
    .option("--out <file>", "file for the code; default: standard output");

function hoursOf(text: string): [number, number] {
  const [, from, to] = /^(\d{1,2})-(\d{1,2})$/.exec(text) ?? [];
  if (from === undefined || to === undefined) throw new InvalidArgumentError("two hours, for example 9-17");
  return [Number(from), Number(to)];
}

function sharedParameters({ hours, approvers, threshold }: Shared): object {
  if (approvers === undefined && threshold !== undefined)
    throw new WrongUse("--threshold needs --approvers: without them nobody would have to approve.");
  const all = {
    hours,
    approvers:
      approvers === undefined ? undefined : { of: approvers, threshold: Number(threshold ?? approvers.length) },
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

async function make<Template extends PolicyTemplate>(
  context: Context,
  template: Template,
  parameters: PolicyParameters<Template>,
  { out }: { out?: string },
): Promise<void> {
  const { io, options, print } = context;
  const { makePolicy } = require("../policies") as typeof Policies;
  const policy: Policy = await makePolicy(template, parameters);
  if (out !== undefined) writeFileSync(resolve(io.cwd, out), policy.code);
  if (options().json === true) print(policy);
  else if (out === undefined) io.out(policy.code);
  else print({ template, cid: policy.cid, file: out });
}
