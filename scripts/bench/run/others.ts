/**
 * workerd and deno at the same two tasks, from npm into a temporary folder. Neither isolates untrusted code next to
 * keys; they show typical speeds.
 */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { request } from "undici";
import { freePort } from "../../dev/ports";
import { SECRET } from "./codes";

const PACKAGES = ["workerd@1.20261117.1", "deno@2.9.6"];
const COLD_RUNS = 10;
const WARM_RUNS = 200;

export interface Contender {
  name: string;
  hello: number[];
  sign: number[];
}

/** Installs both; undefined where the registry does not provide them. */
export function installOthers(folder: string): string | undefined {
  writeFileSync(join(folder, "package.json"), "{}");
  try {
    execFileSync("npm", ["install", "--silent", "--no-audit", "--no-fund", ...PACKAGES], {
      cwd: folder,
      stdio: "ignore",
    });
    return undefined;
  } catch (error) {
    return `workerd and deno could not be installed: ${error instanceof Error ? error.message : String(error)}`;
  }
}

const HELLO_BODY = `"hello bench"`;
const SIGN_BODY = `await new ethers.Wallet("${SECRET}").signMessage("m")`;

function findBinary(folder: string, name: string): string {
  const found = readdirSync(join(folder, "node_modules"), { recursive: true, withFileTypes: true }).find(
    (entry) => entry.isFile() && entry.name === name && /linux/.test(entry.parentPath),
  );
  if (!found) throw new Error(`${name} has no binary for this machine`);
  return join(found.parentPath, found.name);
}

/** ethers as the sandbox has it, and as an ES module's constant. */
const ETHERS = join(__dirname, "../../../executor/sandbox/guest/ethers6.js");
const library = (): string => `const ethers = ${readFileSync(ETHERS, "utf8").trim().replace(/;$/, "")};\n`;

export async function measureDeno(folder: string): Promise<Contender> {
  const binary = findBinary(folder, "deno");
  const run = (file: string): number => {
    const start = performance.now();
    execFileSync(binary, ["run", "--quiet", "--no-check", file], { stdio: ["ignore", "pipe", "pipe"] });
    return performance.now() - start;
  };
  const files = { hello: join(folder, "hello.mjs"), sign: join(folder, "sign.mjs") };
  writeFileSync(files.hello, `console.log(${HELLO_BODY});`);
  writeFileSync(files.sign, `${library()}console.log(${SIGN_BODY});`);
  const times = (file: string): number[] => Array.from({ length: COLD_RUNS + 1 }, () => run(file)).slice(1);
  return { name: "deno, a process for each run", hello: times(files.hello), sign: times(files.sign) };
}

export async function measureWorkerd(folder: string): Promise<Contender[]> {
  const cold: Contender = { name: "workerd, a process for each run", hello: [], sign: [] };
  const warm: Contender = { name: "workerd, warm, isolate shared by all", hello: [], sign: [] };
  for (const task of ["hello", "sign"] as const) {
    const home = join(folder, `workerd-${task}`);
    mkdirSync(home);
    const body = task === "hello" ? HELLO_BODY : SIGN_BODY;
    writeFileSync(
      join(home, "main.js"),
      `${task === "sign" ? library() : ""}export default { async fetch() { return new Response(${body}); } };`,
    );
    for (let i = 0; i <= COLD_RUNS; i++) {
      const { server, url, ms } = await startWorkerd(findBinary(folder, "workerd"), home);
      if (i > 0) cold[task].push(ms);
      if (i === COLD_RUNS) warm[task].push(...(await askAgain(url)));
      server.kill("SIGKILL");
    }
  }
  return [cold, warm];
}

/** Starts a server and measures the time to its first answer. */
async function startWorkerd(binary: string, home: string): Promise<{ server: ChildProcess; url: string; ms: number }> {
  const port = await freePort();
  const config = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = (
    modules = [(name = "main.js", esModule = embed "main.js")],
    compatibilityDate = "2024-09-01"
  ))],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]
);`;
  writeFileSync(join(home, "config.capnp"), config);
  const start = performance.now();
  const server = spawn(binary, ["serve", join(home, "config.capnp")], { stdio: "ignore" });
  const url = `http://127.0.0.1:${port}/`;
  for (;;) {
    if (server.exitCode !== null || performance.now() - start > 15_000) throw new Error("workerd did not answer");
    const answered = await ask(url).catch(() => false);
    if (answered) return { server, url, ms: performance.now() - start };
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

async function ask(url: string): Promise<boolean> {
  const { statusCode, body } = await request(url);
  await body.dump();
  return statusCode === 200;
}

async function askAgain(url: string): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < WARM_RUNS; i++) {
    const start = performance.now();
    await ask(url);
    times.push(performance.now() - start);
  }
  return times;
}
