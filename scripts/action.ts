/**
 * `npm run action -- file.js --params '{…}'`: runs a file in the real sandbox with a throw-away root key and prints the
 * result.
 */
import { styleText } from "node:util";
import { Command, InvalidArgumentError } from "commander";
import { processIo } from "../client/cli/io";
import { paramsOf, readText } from "../client/cli/run";
import { collected } from "../client/cli/verify";
import { defined } from "../protocol/defined";
import { PRICES, RUN_LIMITS } from "../protocol/limits";
import { createLocalRunner, type LocalRun, type LocalRunner } from "./action/localRun";

const WRONG_USE = 2;

type Style = Parameters<typeof styleText>[0];
const coloured = process.stdout.isTTY === true && process.env.NO_COLOR === undefined;
const paint = (style: Style, text: string): string => (coloured ? styleText(style, text) : text);

interface Options {
  readonly seed?: string;
  readonly allowHost?: readonly string[];
  readonly moduleOrigin?: string;
  readonly params?: string;
  readonly paramsFile?: string;
  readonly timeout?: number;
  readonly json?: true;
}

function timeoutOf(text: string): number {
  const ms = Number(text);
  if (!Number.isInteger(ms) || ms < 1 || ms > RUN_LIMITS.wallMs)
    throw new InvalidArgumentError(`It must be 1 to ${RUN_LIMITS.wallMs}.`);
  return ms;
}

const costCents = ({ durationMs }: LocalRun): number =>
  Math.max(1, Math.ceil(durationMs / 1_000)) * PRICES.runSecondCents;

function print(outcome: LocalRun, runner: LocalRunner): void {
  const { response, logs, error, cid, durationMs } = outcome;
  const heading = (text: string): string => paint("bold", text);
  if (error) {
    console.log(`${paint("red", `✗ ${error.code}`)}  ${error.message}`);
    if (error.stack) console.log(paint("dim", error.stack));
  } else {
    console.log(`${paint("green", "✓")} ${heading("response")}\n${JSON.stringify(JSON.parse(response), null, 2)}`);
  }
  console.log(`\n${heading("logs")}\n${logs === "" ? paint("dim", "(none)") : logs.trimEnd()}`);
  console.log(`\n${heading("CID")}    ${cid}\n${heading("PKP")}    ${runner.pkpId} ${paint("dim", "(throw-away)")}`);
  console.log(`${heading("usage")}  ${durationMs.toFixed(1)} ms, ${costCents(outcome)} cent at the default price`);
  if (runner.level.level !== "full")
    console.log(paint("yellow", `\nThis machine's sandbox is not fully isolated: ${runner.level.missing.join("; ")}.`));
}

async function run(file: string, options: Options): Promise<void> {
  const context = { io: processIo() };
  const [code, params] = [readText(context, file), paramsOf(context, options)];
  const { seed, allowHost: allowHosts, moduleOrigin, timeout, json } = options;
  const runner = await createLocalRunner(defined({ seed, allowHosts, moduleOrigin }));
  try {
    const outcome = await runner.run(code, params, timeout);
    if (json) printJson(outcome, runner);
    else print(outcome, runner);
    process.exitCode = outcome.error ? 1 : 0;
  } finally {
    await runner.close();
  }
}

function printJson({ response, logs, error, cid, durationMs }: LocalRun, { pkpId }: LocalRunner): void {
  const usage = { duration_ms: durationMs };
  console.log(JSON.stringify({ response: JSON.parse(response) as unknown, logs, error, cid, pkp_id: pkpId, usage }));
}

const program = new Command("npm run action --")
  .usage("<file.js> [options]")
  .argument("<file.js>")
  .option("--params <json>", "what main receives, a JSON object; pkpId is added unless it is given")
  .option("--params-file <file>", "the same, from a file")
  .option("--seed <text>", "the same text gives the same keys again")
  .option(
    "--allow-host <host>",
    "a host (or host:port) that may be fetched although it is not public; may be repeated",
    collected,
  )
  .option("--module-origin <url>", "where imports are fetched from")
  .option("--timeout <ms>", `a lower time limit than ${RUN_LIMITS.wallMs}`, timeoutOf)
  .option("--json", "everything as one line of JSON")
  .addHelpText("after", `\nExit codes: 0 the action succeeded, 1 it failed, ${WRONG_USE} wrong use`)
  .showHelpAfterError()
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : WRONG_USE))
  .action(run);

program.parseAsync().catch((error: unknown) => program.error(error instanceof Error ? error.message : String(error)));
