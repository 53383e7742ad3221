/**
 * `keywright verify`: prints the checks of `keywright/verify` as a table. The verifier's libraries are loaded on
 * demand, to keep the other commands fast to start.
 */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import type * as Verify from "../verify";
import { EXIT_CODES, type Outcome, type Report, type StepStatus } from "../verify/types";
import { serviceOf } from "./config";
import { Ended, VERIFIERS_WRONG_USE } from "./failure";
import { WrongUse } from "../errors";
import { withProgress } from "./io";
import type { Context } from "./context";
import { readText } from "./run";
import { parseJson } from "../../protocol/json";

const WORDS: Readonly<Record<StepStatus, string>> = {
  passed: "✓ passed",
  failed: "✗ FAILED",
  not_checked: "– not checked",
};
const VERDICTS: Readonly<Record<Outcome, string>> = {
  verified: "VERIFIED: every step passed.",
  failed: "FAILED: do not trust this service before every failed step is explained.",
  simulated: "SIMULATED: the service itself states that its quotes are simulated. Nothing here is protected by a TEE.",
  incomplete: "NOT VERIFIED: some steps could not be checked; all checked steps passed.",
};

export interface VerifierOptions {
  readonly rpc?: string[];
  readonly allowlist?: string;
  readonly contract?: string;
  readonly measurements?: string;
  readonly keyProvider?: string;
  readonly images?: string;
  readonly compose?: string;
  readonly collateral?: string;
  readonly pccs?: string;
  readonly acceptTcb?: string[];
  readonly ca?: string;
}

interface Options extends VerifierOptions {
  readonly save?: string;
}

export function addVerify(program: Command, context: Context): void {
  withVerifierOptions(program.command("verify"))
    .description(
      `check from outside what code a service runs and that it runs in a TEE; exit codes: ${Object.entries(EXIT_CODES)
        .map(([outcome, code]) => `${code} ${outcome}`)
        .join(", ")}, ${VERIFIERS_WRONG_USE} usage error`,
    )
    .argument("[url]", "origin of the service")
    .option("--save <file>", "keep the evidence in a file, for `keywright receipt --quote`")
    .action((url: string | undefined, options: Options) => verify(context, url, options));
}

/** Of an option that may be repeated. One that takes several values would take the argument behind it, too. */
export const collected = (value: string, before: string[] = []): string[] => [...before, value];

/** How quotes are judged, for every command that does. */
export function withVerifierOptions(command: Command): Command {
  return command
    .option(
      "--rpc <url>",
      "your own RPC endpoint, to ask the contracts; may be repeated; default: public ones, of which two must agree",
      collected,
    )
    .option("--allowlist <address>", "the allow-list contract; default: the measured application id")
    .option("--contract <address>", "the account contract that you expect the service to act for")
    .option("--measurements <file>", "JSON with mrtd, rtmr0, rtmr1, rtmr2 of the machine image you expect")
    .option("--key-provider <id>", "hex id of the key management that you expect to give the service its keys")
    .option("--images <file>", "image/digests.json of the release that you expect: the images of its services")
    .option("--compose <file>", "compose.yaml of that release: how they run")
    .option("--collateral <file>", "Intel's collateral as JSON, instead of fetching it")
    .option("--pccs <url>", "where to fetch collateral")
    .option("--accept-tcb <status>", "a TCB status to accept besides UpToDate; may be repeated", collected)
    .option("--ca <file>", "PEM of certificate authorities to trust for TLS");
}

async function verify(context: Context, given: string | undefined, options: Options): Promise<void> {
  const url = given ?? serviceOf(context.io.env, context.options()).url;
  const { recordService } = require("../verify") as typeof Verify;
  const settings = verifierSettings(context, options);
  const { report, evidence } = await withProgress(context.io, `verifying ${url}`, recordService(url, settings));
  if (context.options().json === true) context.print(report);
  else context.io.out(textOf(report));
  if (options.save !== undefined) save(context, options.save, evidence);
  if (report.exitCode !== 0) throw new Ended(report.exitCode);
}

/** What is no verdict must not look like one. */
function save({ io }: Context, file: string, evidence: object): void {
  try {
    writeFileSync(resolve(io.cwd, file), `${JSON.stringify(evidence)}\n`);
  } catch {
    throw new WrongUse(`${file} cannot be written: the evidence was not kept.`);
  }
}

/** The given options as the verifier takes them. */
export function verifierSettings(context: Pick<Context, "io">, options: VerifierOptions): Verify.VerifyOptions {
  const json = (file: string | undefined): unknown =>
    file === undefined ? undefined : parse(file, readText(context, file));
  const all = {
    rpcUrl: options.rpc,
    allowlist: options.allowlist,
    contract: options.contract,
    measurements: json(options.measurements),
    keyProvider: options.keyProvider,
    builtImages: digestsOf(options.images, json(options.images)),
    composeFile: options.compose === undefined ? undefined : readText(context, options.compose),
    collateral: json(options.collateral),
    pccsUrl: options.pccs,
    acceptTcb: options.acceptTcb,
    ca: options.ca === undefined ? undefined : readText(context, options.ca),
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as Verify.VerifyOptions;
}

/** Of the form of image/digests.json. @throws WrongUse naming the file. */
function digestsOf(file: string | undefined, value: unknown): Record<string, string> | undefined {
  if (file === undefined) return undefined;
  const images = Object.entries((value ?? {}) as Record<string, { readonly digest?: unknown } | null>).map(
    ([name, image]) => [name, String(image?.digest)] as const,
  );
  if (images.length === 0 || images.some(([, digest]) => !/^sha256:[0-9a-f]{64}$/.test(digest)))
    throw new WrongUse(`${file} does not name the digest of each image.`);
  return Object.fromEntries(images);
}

/** @throws WrongUse naming the file. */
export function parse(file: string, text: string): unknown {
  const value = parseJson(text);
  if (value === undefined) throw new WrongUse(`${file} is not JSON.`);
  return value;
}

/** Whoever keeps evidence can write another address into it. */
function subjectOf({ baseUrl, isRecorded, contract }: Pick<Report, "baseUrl" | "isRecorded" | "contract">): string {
  if (!isRecorded) return baseUrl;
  return `recorded evidence, said to be of ${baseUrl}; contract ${contract ?? "not attested"}`;
}

/** The report as a table. */
export function textOf({ tee, steps, notes, warnings, outcome, ...subject }: Report): string {
  const width = Math.max(...steps.map(({ title }) => title.length));
  const rows = steps.map(
    ({ status, title, detail }) => `${WORDS[status].padEnd(13)}  ${title.padEnd(width)}  ${detail}`,
  );
  const judged = notes.length === 0 ? [] : ["", "Attested, for you to judge:", ...notes.map((note) => `  ${note}`)];
  const warned = warnings.flatMap((warning) => ["", `WARNING: ${warning}`]);
  const lines = [`${subjectOf(subject)} (tee: ${tee})`, "", ...rows, ...judged, ...warned, "", VERDICTS[outcome]];
  return `${lines.join("\n")}\n`;
}
