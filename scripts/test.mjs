// `npm test` and `npm run test:deep`: every test that needs nothing but the packages, contracts first. The counts are the only difference.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const deep = process.argv.includes("--deep");
const env = { ...process.env, KEYWRIGHT_DEEP: deep ? "1" : "", HARDHAT_DISABLE_TELEMETRY_PROMPT: "true" };

const suites = [
  ["contracts", "hardhat", ["test"]],
  ["services", "mocha", [...(deep ? ["--timeout", "1200000"] : []), "test/{protocol,relayer,executor,client,e2e}/**/*.test.ts"]],
];

let failed = false;
for (const [name, command, args] of suites) {
  console.log(`\n── ${name} ──`);
  const { status } = spawnSync("npx", ["--no-install", command, ...args], { cwd: root, env, stdio: "inherit" });
  failed ||= status !== 0;
}
process.exit(failed ? 1 : 0);
