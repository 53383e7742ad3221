/**
 * `npm run verify -- <base url>`: the steps of client/verify as a table, and one exit code (0 verified, 1 failed, 2
 * simulated, 3 incomplete, 4 wrong use, 5 the images could not be built).
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { processIo } from "../client/cli/io";
import { textOf, verifierSettings, withVerifierOptions, type VerifierOptions } from "../client/cli/verify";
import { EXIT_CODES, verifyService, type VerifyOptions } from "../client/verify";

const WRONG_USE = 4;
const NOT_BUILT = 5;
const EXIT_TEXT = `
Exit codes: ${Object.entries(EXIT_CODES)
  .map(([outcome, code]) => `${code} ${outcome}`)
  .join(", ")}, ${WRONG_USE} wrong use, ${NOT_BUILT} the source's images could not be built`;

interface Options extends VerifierOptions {
  readonly source?: string;
  readonly json?: true;
}

/** Not a fault of the command line: a program is missing, or the build failed. */
class NotBuilt extends Error {}

/** The image digests built from this source, by service name, and how its compose file runs them. */
async function builtFrom(source: string): Promise<Pick<VerifyOptions, "builtImages" | "composeFile">> {
  // Only here, so that the program starts quickly without --source.
  const { buildImages, COMPOSE_FILE } = await import("./image/build.js");
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

async function verify(baseUrl: string, { source, json, ...options }: Options): Promise<void> {
  const settings = verifierSettings({ io: processIo() }, options);
  const built = source === undefined ? {} : await builtFrom(source);
  const report = await verifyService(baseUrl, { ...settings, ...built });
  if (json) console.log(JSON.stringify(report, null, 2));
  else process.stdout.write(textOf(report));
  process.exitCode = report.exitCode;
}

const program = withVerifierOptions(
  new Command("npm run verify --").argument("<base url>").usage("<base url> [options]"),
)
  .option(
    "--source <folder>",
    "this repository at the release you expect: its images are built and compared, and how they run (takes minutes; " +
      "Linux on x64)",
  )
  .option("--json", "the report as JSON")
  .addHelpText("after", EXIT_TEXT)
  .showHelpAfterError()
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : WRONG_USE))
  .action(verify);

program.parseAsync().catch((error: unknown) => {
  if (error instanceof NotBuilt) {
    console.error(error.message);
    process.exitCode = NOT_BUILT;
  } else program.error(messageOf(error));
});
