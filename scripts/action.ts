/**
 * `npm run action -- file.js --params '{…}'`: runs a file in the real sandbox with a throw-away root key and prints the
 * result.
 */
import { readFileSync } from "node:fs";
import { parseArgs, styleText } from "node:util";
import { PRICES, RUN_LIMITS } from "../protocol/limits";
import { createLocalRunner, type LocalRun, type LocalRunner } from "./action/localRun";
import { defined } from "../protocol/defined";

const USAGE = `npm run action -- <file.js> [options]
  --params <json>          what main receives, a JSON object; pkpId is added unless it is given
  --params-file <file>     the same, from a file
  --seed <text>            the same text gives the same keys again
  --allow-host <host>      a host (or host:port) that may be fetched although it is not public (may be repeated)
  --module-origin <url>    where imports are fetched from
  --timeout <ms>           a lower time limit than ${RUN_LIMITS.wallMs}
  --json                   everything as one line of JSON
Exit codes: 0 the action succeeded, 1 it failed, 2 wrong use`;

type Style = Parameters<typeof styleText>[0];
const coloured = process.stdout.isTTY === true && process.env.NO_COLOR === undefined;
const paint = (style: Style, text: string): string => (coloured ? styleText(style, text) : text);

interface Request {
  code: string;
  params: Record<string, unknown>;
  wallMs: number;
  json: boolean;
  options: { seed?: string; allowHosts: string[]; moduleOrigin?: string };
}

class WrongUse extends Error {}

function readArguments(): Request {
  const text = { type: "string" } as const;
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      params: text,
      "params-file": text,
      seed: text,
      timeout: text,
      "module-origin": text,
      "allow-host": { type: "string", multiple: true },
      json: { type: "boolean" },
    },
  });
  const [file, ...more] = positionals;
  if (file === undefined || more.length > 0) throw new WrongUse("name one file");
  const { seed, "module-origin": moduleOrigin } = values;
  return {
    code: readFileSync(file, "utf8"),
    params: readParams(
      values["params-file"] === undefined ? (values.params ?? "{}") : readFileSync(values["params-file"], "utf8"),
    ),
    wallMs: readTimeout(values.timeout),
    json: values.json === true,
    options: { allowHosts: values["allow-host"] ?? [], ...defined({ seed, moduleOrigin }) },
  };
}

function readParams(text: string): Record<string, unknown> {
  const value = JSON.parse(text) as unknown;
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new WrongUse("--params must be a JSON object");
  return value as Record<string, unknown>;
}

function readTimeout(text: string | undefined): number {
  const ms = text === undefined ? RUN_LIMITS.wallMs : Number(text);
  if (!Number.isInteger(ms) || ms < 1 || ms > RUN_LIMITS.wallMs)
    throw new WrongUse(`--timeout must be 1 to ${RUN_LIMITS.wallMs}`);
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

async function main(): Promise<number> {
  const request = readArguments();
  const runner = await createLocalRunner(request.options);
  try {
    const outcome = await runner.run(request.code, request.params, request.wallMs);
    if (request.json) {
      const { response, logs, error, cid, durationMs } = outcome;
      console.log(
        JSON.stringify({
          response: JSON.parse(response) as unknown,
          logs,
          ...(error && { error }),
          cid,
          pkp_id: runner.pkpId,
          usage: { duration_ms: durationMs },
        }),
      );
    } else print(outcome, runner);
    return outcome.error ? 1 : 0;
  } finally {
    await runner.close();
  }
}

main().then(
  (code) => (process.exitCode = code),
  (error: unknown) => {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    process.exitCode = 2;
  },
);
