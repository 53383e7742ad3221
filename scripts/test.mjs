// `npm test` and `npm run test:deep`: every test that needs nothing but the packages, contracts first. The counts are the only difference; the deep run also
// leaves its figures in bench/deep.json. `-- contracts` or `-- services` runs one of the two.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { projectEnvironment } from "./node.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const deep = process.argv.includes("--deep");
const reporter = join(root, "scripts", "figuresReporter.cjs");
const figuresFolder = mkdtempSync(join(tmpdir(), "keywright-figures-"));

const suites = {
  contracts: ["hardhat", ["test"]],
  services: ["mocha", [...(deep ? ["--timeout", "1200000", "--reporter", reporter] : []), "test/{protocol,relayer,executor,client,scripts,e2e}/**/*.test.ts"]],
};
const asked = Object.keys(suites).filter((name) => process.argv.includes(name));

let failed = false;
for (const name of asked.length > 0 ? asked : Object.keys(suites)) {
  const [command, args] = suites[name];
  console.log(`\n── ${name} ──`);
  const figures = join(figuresFolder, `${name}.json`);
  const env = { ...projectEnvironment(), HARDHAT_DISABLE_TELEMETRY_PROMPT: "true", KEYWRIGHT_DEEP: deep ? "1" : "", KEYWRIGHT_FIGURES: deep ? figures : "" };
  const { status } = spawnSync(command, args, { cwd: root, env, stdio: "inherit" });
  failed ||= status !== 0;
  if (existsSync(figures)) keep(name, JSON.parse(readFileSync(figures, "utf8")));
}
rmSync(figuresFolder, { recursive: true, force: true });
process.exit(failed ? 1 : 0);

/** The deep run's last figures, suite by suite. */
function keep(name, figures) {
  const file = join(root, "bench", "deep.json");
  const earlier = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
  const on = `${new Date().toISOString().slice(0, 10)}, ${availableParallelism()} cores, Node ${process.version}`;
  writeFileSync(file, `${JSON.stringify({ ...earlier, [name]: { on, ...figures } }, undefined, 2)}\n`);
}
