/**
 * `npm run verify -- <base url>`: the steps of client/verify as a table, and one exit code (0 verified, 1 failed, 2
 * simulated, 3 incomplete, 4 wrong use, 5 the images could not be built).
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { buildImages, COMPOSE_FILE } from "./image/build";
import { textOf } from "../client/cli/verify";
import { EXIT_CODES, verifyService, type VerifyOptions } from "../client/verify";

const USAGE = `npm run verify -- <base url> [options]
  --rpc <url>              your own RPC endpoint, to ask the contracts (may be repeated: the next when one fails);
                           default: public ones of the chain, of which two must agree
  --allowlist <address>    the allow-list contract; default: the measured application id
  --contract <address>     the account contract that you expect the service to act for
  --measurements <file>    JSON with mrtd, rtmr0, rtmr1, rtmr2 of the machine image you expect
  --key-provider <id>      hex id of the key management that you expect to give the service its keys
  --source <folder>        this repository at the release you expect: its images are built and compared, and how
                           they run (takes minutes; Linux on x64)
  --collateral <file>      Intel's collateral as JSON, instead of fetching it
  --pccs <url>             where to fetch collateral
  --accept-tcb <status>    a TCB status to accept besides UpToDate (may be repeated)
  --ca <file>              PEM of certificate authorities to trust for TLS
  --json                   the report as JSON
Exit codes: ${Object.entries(EXIT_CODES)
  .map(([outcome, code]) => `${code} ${outcome}`)
  .join(", ")}, 4 wrong use, 5 the source's images could not be built`;
const WRONG_USE = 4;
const NOT_BUILT = 5;

interface Request {
  baseUrl: string;
  json: boolean;
  options: VerifyOptions;
  source: string | undefined;
}

function readArguments(): Request {
  const text = { type: "string" } as const;
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      rpc: { type: "string", multiple: true },
      allowlist: text,
      contract: text,
      source: text,
      measurements: text,
      "key-provider": text,
      collateral: text,
      pccs: text,
      "accept-tcb": { type: "string", multiple: true },
      ca: text,
      json: { type: "boolean" },
    },
  });
  const [baseUrl, ...more] = positionals;
  if (baseUrl === undefined || more.length > 0) throw new RangeError("one base URL is needed");
  const given = {
    rpcUrl: values.rpc,
    allowlist: values.allowlist,
    contract: values.contract,
    measurements: jsonFile(values.measurements),
    keyProvider: values["key-provider"],
    collateral: jsonFile(values.collateral),
    pccsUrl: values.pccs,
    acceptTcb: values["accept-tcb"],
    ca: values.ca === undefined ? undefined : readFileSync(values.ca, "utf8"),
  };
  const options = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as VerifyOptions;
  return { baseUrl, json: values.json === true, options, source: values.source };
}

function jsonFile(path: string | undefined): unknown {
  return path === undefined ? undefined : (JSON.parse(readFileSync(path, "utf8")) as unknown);
}

/** Not a fault of the command line: a program is missing, or the build failed. */
class NotBuilt extends Error {}

/** The image digests built from this source, by service name, and how its compose file runs them. */
async function builtFrom(source: string): Promise<Pick<VerifyOptions, "builtImages" | "composeFile">> {
  const output = mkdtempSync(join(tmpdir(), "keywright-verify-"));
  try {
    const images = await buildImages({ source: resolve(source), output });
    return {
      builtImages: Object.fromEntries(Object.entries(images).map(([name, { digest }]) => [name, digest])),
      composeFile: readFileSync(join(output, COMPOSE_FILE), "utf8"),
    };
  } catch (error) {
    throw new NotBuilt(messageOf(error));
  } finally {
    rmSync(output, { recursive: true, force: true });
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

async function main(): Promise<void> {
  try {
    const { baseUrl, json, options, source } = readArguments();
    const report = await verifyService(
      baseUrl,
      source === undefined ? options : { ...options, ...(await builtFrom(source)) },
    );
    if (json) console.log(JSON.stringify(report, null, 2));
    else process.stdout.write(textOf(report));
    process.exitCode = report.exitCode;
  } catch (error) {
    const isUse = !(error instanceof NotBuilt);
    console.error(isUse ? `${messageOf(error)}\n\n${USAGE}` : messageOf(error));
    process.exitCode = isUse ? WRONG_USE : NOT_BUILT;
  }
}

void main();
