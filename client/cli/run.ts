/** `keywright run` and `keywright cid`: code from files. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import type * as Cid from "../../protocol/cid";
import { parseCid } from "../../protocol/cidText";
import type { Result } from "../operations";
import { EXIT, Ended } from "./failure";
import { WrongUse } from "../errors";
import type { Context } from "./context";
import { jsonText, lines, oneLine } from "./text";
import { defined } from "../../protocol/defined";
import { parseJson } from "../../protocol/json";

interface RunOptions {
  readonly params?: string;
  readonly paramsFile?: string;
  readonly pkp?: string;
  readonly timeout?: string;
}

export function addRun(program: Command, context: Context): void {
  program
    .command("run")
    .description("run an action: a file of JavaScript, or the CID of published code")
    .argument("<file or CID>")
    .option("--params <json>", "what main receives, a JSON object")
    .option("--params-file <file>", "the same, from a file")
    .option("--pkp <id>", "ask for the permission to use this PKP before the code starts")
    .option("--timeout <ms>", "a lower time limit for this run")
    .action((code: string, options: RunOptions) => run(context, code, options));
  program
    .command("cid")
    .description("the CID of a file of code, computed here")
    .argument("<file>")
    .action(async (file: string) => {
      const { cidOfCode } = require("../../protocol/cid") as typeof Cid;
      const cid = await cidOfCode(readText(context, file));
      context.print(context.options().json === true ? { cid } : cid);
    });
}

export function readText({ io }: Pick<Context, "io">, file: string): string {
  try {
    return readFileSync(resolve(io.cwd, file), "utf8");
  } catch {
    throw new WrongUse(`${file} cannot be read.`);
  }
}

async function run(context: Context, named: string, options: RunOptions): Promise<void> {
  const cid = parseCid(named);
  const input = {
    ...(cid === undefined ? { code: readText(context, named) } : { action_ipfs_cid: cid }),
    js_params: paramsOf(context, options),
    ...defined({ pkp_id: options.pkp, timeout_ms: options.timeout }),
  };
  const answer = (await context.asking("running", (connection) =>
    connection.call("runAction", input),
  )) as Result<"runAction">;
  if (context.options().json === true) context.print(answer);
  else printRun(context, answer);
  if (answer.has_error) throw new Ended(EXIT.actionFailed);
}

export function paramsOf(
  context: Pick<Context, "io">,
  { params, paramsFile }: Pick<RunOptions, "params" | "paramsFile">,
): Record<string, unknown> {
  if (params !== undefined && paramsFile !== undefined)
    throw new WrongUse("Give either --params or --params-file: which one counts would be a guess.");
  const text = paramsFile === undefined ? (params ?? "{}") : readText(context, paramsFile);
  const value = parseJson(text);
  if (value === undefined) throw new WrongUse("The parameters are not JSON.");
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new WrongUse("The parameters must be a JSON object.");
  return value as Record<string, unknown>;
}

/** Prints only the response on standard output, so that it can be piped; everything else on standard error. */
function printRun({ io }: Context, { response, logs, error, usage }: Result<"runAction">): void {
  if (logs !== "") io.err(lines(logs.endsWith("\n") ? logs : `${logs}\n`));
  if (error !== undefined)
    io.err(
      `error ${oneLine(error.code)}: ${oneLine(error.message, 2_000)}\n` +
        (error.stack === undefined ? "" : `${lines(error.stack)}\n`),
    );
  else io.out(`${jsonText(response, 2)}\n`);
  io.err(`${oneLine(`${usage.duration_ms} ms, ${usage.cost_cents} cent`)}\n`);
}
