// `npm test` and `npm run test:deep`: every test that needs only the packages; `npm run test:system`: those with a
// browser, PostgreSQL and images. Runs as many suites at once as there are cores; prints their output suite by suite.
// The deep run (also of the system tests, by `-- --system`) uses the large counts, one suite at a time, and writes its
// figures to bench/deep.json; without `--system` it also proves what it can of the contract's libraries
// (scripts/proofs.ts) and tests the contract's tests with a sample of mutants (scripts/mutation.ts). Suites named after
// `--` run alone, and `--times` lists the files that took longest.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, getPriority, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { projectEnvironment } from "./node.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const deep = process.argv.includes("--deep");
const figuresFolder = mkdtempSync(join(tmpdir(), "keywright-figures-"));
// Tests append what they need and lack (test/support/needs.ts).
const leftOut = join(figuresFolder, "leftOut");
const totals = { passing: 0, failing: 0, pending: 0 };
const mocha = [
  ...(deep ? ["--timeout", "1200000"] : []),
  ...["--reporter", join(root, "scripts", "testReporter.cjs"), "--color"],
];

/** They replace the clocks of their process, which other tests would not survive. */
const SIMULATED = "test/{relayer/chain/simulator,protocol/{crowds,fairShare}}.test.ts";
// Longest first, to shorten the total time.
const plain = {
  relayer: ["mocha", [...mocha, "--ignore", SIMULATED, "test/relayer/**/*.test.ts"]],
  executor: ["mocha", [...mocha, "test/executor/**/*.test.ts"]],
  e2e: ["mocha", [...mocha, "test/e2e/**/*.test.ts"]],
  clients: ["mocha", [...mocha, "--ignore", SIMULATED, "test/!(contracts|e2e|executor|relayer|system)/**/*.test.ts"]],
  contracts: ["hardhat", ["test"]],
  simulated: ["mocha", [...mocha, SIMULATED]],
};
const MUTANTS = "120"; // about half an hour; `npm run mutation` takes all of them, for hours
const mutation = ["node", ["-r", "./scripts/typescript.cjs", "scripts/mutation.ts", "--sample", MUTANTS]];
const proofs = ["node", ["-r", "./scripts/typescript.cjs", "scripts/proofs.ts"]];
const PACKAGES = "examples|project|sdkInBrowser|sdkPackage|viewer";
/** They only compute: beside others they take the time of the processor that those leave. */
const PATIENT = ["contracts", "simulated"];
/** Tests that may be left out where something is missing. */
const needing = readdirSync(join(root, "test"), { recursive: true })
  .filter((file) => file.endsWith(".test.ts") && !file.startsWith("system"))
  .map((file) => join("test", file))
  .filter((file) => readFileSync(join(root, file), "utf8").includes('support/needs"'));
/**
 * Those, and tests of actions' and fetchers' processes that bubblewrap may change: what they expect depends on the
 * system's calls, on memory, files, users, or on how processes start and end. What happens within the engine, and what
 * the keyholder counts, is the same with any wrapper; of the attacks, one for each way to end is run again.
 */
const ATTACKS = [
  ...["arrayBufferFlood", "atomicsWait", "deepRecursion", "hugeStringSplit", "intlFlood", "killedChild", "manyBodies"],
  ...["memoryPressure", "randomFlood", "reachingTheHost", "resizableBuffers", "stringDoubling"],
];
/** Of the engine alone, or of programs that the test itself starts. */
const UNWRAPPED = [
  ...["actions", "childMemory", "curveExamples", "docs", "frames", "fromLit", "globals", "imports", "priority", "run"],
  ...["subtle", "tripwire"],
];
const ISOLATED = [
  `test/executor/sandbox/!(${UNWRAPPED.join("|")}).test.ts`,
  `test/executor/attacks/@(${ATTACKS.join("|")}).test.ts`,
  "test/executor/fetcher/@(guestFetch|sources).test.ts",
  "test/e2e/hostileActions.test.ts",
  ...needing,
];
const system = {
  relayers: ["mocha", [...mocha, `test/system/!(image|installedPackage|${PACKAGES}).test.ts`]],
  dashboard: ["mocha", [...mocha, "test/system/dashboard/**/*.test.ts"]],
  images: ["mocha", [...mocha, "test/system/image.test.ts"]],
  // Run by `npm test` too, where bubblewrap and curl may be missing.
  isolation: ["mocha", [...mocha, ...ISOLATED]],
  packages: ["mocha", [...mocha, `test/system/@(${PACKAGES}).test.ts`]],
  installed: ["mocha", [...mocha, "test/system/installedPackage.test.ts"]],
};
const isSystem = process.argv.includes("--system");
const suites = isSystem ? system : deep ? { ...plain, proofs, mutation } : plain;
const asked = Object.keys(suites).filter((name) => process.argv.includes(name));
const waiting = asked.length > 0 ? asked : Object.keys(suites);
const running = new Map();
/** Of Linux: where the processor is busy, they get a third of the share of others. */
const PATIENCE = 5;
const LEAST_PRIORITY = 19;
/** Enough for the failures' texts behind mocha's closing lines. */
const SUMMARY_CHARS = 1_000_000;
/** Files that `--times` lists. */
const LISTED = 60;
/** More failing files than these are no accident of a busy machine. */
const MAX_TRIED_AGAIN = 5;
let failed = false;
/** Tests that failed in suites whose report says which. */
const failures = [];
const seconds = {};

const atOnce = deep ? 1 : availableParallelism();
await Promise.all([...Array.from({ length: atOnce }, () => work()), ...(deep ? [] : [work(true)])]);
await tryAlone();
summarise();
rmSync(figuresFolder, { recursive: true, force: true });
process.exit(failed ? 1 : 0);

/** The next suite to run. */
function next(isPatient) {
  const at = isPatient ? waiting.findIndex((name) => PATIENT.includes(name)) : 0;
  return at < 0 ? undefined : waiting.splice(at, 1)[0];
}

async function work(isPatient = false) {
  for (let name = next(isPatient); name !== undefined; name = next(isPatient)) {
    const { status, figures } = await run(name, isPatient);
    if (figures) Object.assign(seconds, figures.files);
    // A suite that ends well and has tested nothing has lost its files.
    const isTested = name === "proofs" || name === "mutation" || figures?.passes > 0;
    if (status === 0 && isTested) continue;
    failures.push(...(figures?.failed ?? []));
    // Only mocha's own files can be tried again alone.
    if (suites[name][0] !== "mocha" || !(figures?.failed.length > 0)) failed = true;
  }
}

/**
 * Runs files once more with nothing beside them if all that failed in them took too long: other suites keep the machine
 * busy. Whatever failed in another way is a fault. What passes alone is reported all the same.
 */
async function tryAlone() {
  const files = [...new Set(failures.map(({ file }) => file))];
  if (files.length === 0) return;
  suites.again = ["mocha", [...mocha, ...files]];
  const isWorthIt = !failed && !deep && files.length <= MAX_TRIED_AGAIN && failures.every(({ isLate }) => isLate);
  const { status, figures } = isWorthIt ? await run("again") : {};
  if (status === 0 && failures.every(({ isHook, test }) => isHook || figures?.passed.includes(test)))
    Object.assign(totals, { passing: totals.passing + totals.failing, failing: 0 });
  else failed = true;
}

/** Runs a suite; its output is shown immediately if it is the oldest running one, else buffered until it is. */
function run(name, isPatient = false) {
  const [command, args] = suites[name];
  const figures = join(figuresFolder, `${name}.json`);
  const env = {
    ...projectEnvironment(),
    HARDHAT_DISABLE_TELEMETRY_PROMPT: "true",
    // Mutants are tested with the quick counts.
    KEYWRIGHT_DEEP: deep && name !== "mutation" ? "1" : "",
    KEYWRIGHT_FIGURES: name !== "mutation" ? figures : "",
    KEYWRIGHT_LEFT_OUT: name !== "again" ? leftOut : "",
  };
  const child = spawn(command, args, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
  if (isPatient && child.pid !== undefined) setPriority(child.pid, Math.min(getPriority() + PATIENCE, LEAST_PRIORITY));
  const output = { kept: [`\n── ${name} ──\n`] };
  running.set(name, output);
  let tail = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => {
      tail = (tail + chunk).slice(-SUMMARY_CHARS);
      output.kept.push(chunk);
      show();
    });
  show();
  return new Promise((resolve) => {
    child.once("error", (error) => (output.kept.push(`${error.message}\n`), resolve({ status: 1 })));
    child.once("close", (status) => {
      output.isOver = true;
      if (name !== "again") add(tail);
      show();
      const report = existsSync(figures) ? JSON.parse(readFileSync(figures, "utf8")) : undefined;
      if (deep && report) keep(name, report);
      resolve({ status: status ?? 1, figures: report });
    });
  });
}

function show() {
  for (const [name, output] of running) {
    for (const chunk of output.kept.splice(0)) process.stdout.write(chunk);
    if (!output.isOver) return;
    running.delete(name);
  }
}

/** Adds the figures of mocha's closing lines. The last ones count: a failure's text may quote others. */
function add(tail) {
  const plain = tail.replace(/\u001b\[[0-9;]*m/g, "");
  for (const kind of Object.keys(totals))
    totals[kind] += Number(lastOf(plain, new RegExp(`^ +(\\d+) ${kind}\\b`, "gm")));
}

function lastOf(text, pattern) {
  return [...text.matchAll(pattern)].at(-1)?.[1] ?? 0;
}

/** The failures once more, since a log may keep only its end; what was left out and why, in one line; the totals. */
function summarise() {
  if (process.argv.includes("--times"))
    for (const [file, took] of Object.entries(seconds)
      .sort(([, a], [, b]) => b - a)
      .slice(0, LISTED))
      console.log(`${String(took).padStart(7)} s  ${file}`);
  for (const { file, test, error } of failures)
    console.log(`\n${failed ? "Failed" : "Failed beside other suites, passed alone"}: ${file}: ${test}\n${error}`);
  const lines = existsSync(leftOut) ? readFileSync(leftOut, "utf8").trim().split("\n") : [];
  const counts = Map.groupBy(lines, (line) => line);
  const sentences = [...counts].map(
    ([need, { length }]) => `${length} test${length === 1 ? " needs" : "s need"} ${need}`,
  );
  if (sentences.length > 0) console.log(`\nLeft out: ${sentences.join("; ")}`);
  console.log(`\n${totals.passing} passed, ${totals.failing} failed, ${totals.pending} skipped`);
  if (totals.pending !== lines.length) {
    console.log("Some tests were left out for no reason on the list in test/support/needs.ts: they must run.");
    failed = true;
  }
  if (totals.passing === 0) failed = true;
}

/** The deep run's last figures, suite by suite; those of suites that no longer exist are dropped. */
function keep(name, { files: _files, passed: _passed, failed: _failed, ...figures }) {
  const file = join(root, "bench", "deep.json");
  const all = existsSync(file) ? Object.entries(JSON.parse(readFileSync(file, "utf8"))) : [];
  const earlier = Object.fromEntries(all.filter(([suite]) => suite in { ...plain, ...system, mutation }));
  const on = `${new Date().toISOString().slice(0, 10)}, ${availableParallelism()} cores, Node ${process.version}`;
  writeFileSync(file, `${JSON.stringify({ ...earlier, [name]: { on, ...figures } }, undefined, 2)}\n`);
}
