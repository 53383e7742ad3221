/**
 * The barriers between a compromised child and the keys, tested with real processes: as root every barrier must hold.
 */
import { expect } from "chai";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { detectConfinement, startConfined } from "../../../executor/confinement/confine";
import { GUEST_PRIORITY } from "../../../executor/confinement/priority";
import { createSandboxPool } from "../../../executor/sandbox/pool";
import { IsolationTooWeak } from "../../../executor/sandbox/types";
import { RUN_LIMITS } from "../../../protocol/limits";
import { eventually } from "../../support/chainBed";
import { childrenOf } from "../../support/children";
import { needs } from "../../support/needs";
import { noFetcher, silent } from "../../support/sandbox";

const ROOT = join(__dirname, "..", "..", "..");
const isRoot = process.getuid?.() === 0;
const options = { limits: RUN_LIMITS, size: 1, logger: silent, fetcher: noFetcher };

/** Runs a script as a child would be run; returns its output, or the signal that ended it. */
async function asChild(script: string): Promise<string> {
  await detectConfinement();
  const drop = "process.setgroups([61999]); process.setgid(61999); process.setuid(61999);";
  const { process: child } = startConfined(
    ["-e", drop + script],
    { filter: "child", withoutNetwork: true, reads: [], priority: GUEST_PRIORITY },
    { stdout: "pipe" },
  );
  let output = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (output += text));
  return new Promise((resolve) => child.once("close", (code) => resolve(output.trim() || `ended with code ${code}`)));
}

/** Starts a pool after this change to a copy of /usr/bin, the current folder; returns what it says is missing first. */
function causeAfter(change: string): string {
  const hidden = `mount -t tmpfs tmpfs /mnt && mkdir /mnt/upper /mnt/work && cd /usr/bin &&
    mount -t overlay overlay -o lowerdir=.,upperdir=/mnt/upper,workdir=/mnt/work /usr/bin && cd /usr/bin && ${change} &&
    cd "${ROOT}" && exec "$0" "$@"`;
  const script = `const { createSandboxPool } = require("./dist/executor/sandbox/pool.js");
    const logger = require("pino")({ level: "silent" });
    const options = { limits: ${JSON.stringify(RUN_LIMITS)}, size: 1, logger, fetcher: {} };
    createSandboxPool(options).then(async (pool) => {
      console.log(pool.stats().level.missing[0]);
      await pool.close(0);
    });`;
  const inside = ["--mount", "--propagation", "private", "sh", "-c", hidden, process.execPath, "-e", script];
  const { stdout, stderr } = spawnSync("unshare", inside, { encoding: "utf8" });
  return stdout + stderr;
}

describe("isolation of children", function () {
  this.timeout(20_000);
  let folder: string;
  before(() => (folder = mkdtempSync(join(tmpdir(), "isolation-"))));
  after(() => rmSync(folder, { recursive: true }));

  it("the self-test reports the achieved level and what is missing", async function () {
    await needs(this, "bubblewrap");
    const pool = await createSandboxPool(options);
    const { level } = pool.stats();
    await pool.close(0);
    if (isRoot) expect(level).to.deep.equal({ level: "full", missing: [] });
    else expect(level.missing).to.include("children run as the keyholder's own user");
  });

  it("the self-test says how to install bubblewrap, or why it does not work where it is installed", async function () {
    await needs(this, "root");
    const children = "children may make any system call";
    expect(causeAfter("rm -f bwrap")).to.equal(`without bubblewrap ${children}: apt-get install bubblewrap\n`);
    const refusal = "bwrap: No permissions to create new namespace";
    writeFileSync(join(folder, "bwrap"), `#!/bin/sh\nprintf '${refusal}\\nSee elsewhere\\n' >&2\nexit 1\n`, {
      mode: 0o755,
    });
    expect(causeAfter(`cp --remove-destination ${join(folder, "bwrap")} .`)).to.equal(
      `bubblewrap does not work here, so ${children}: ${refusal}\n`,
    );
  });

  it("the self-test leaves nothing in the machine's folder for temporary files", async () => {
    const leftovers = () => readdirSync("/tmp").filter((name) => name.startsWith(".sandbox-self-test"));
    const before = leftovers();
    await (await createSandboxPool(options)).close(0);
    expect(leftovers()).to.deep.equal(before);
  });

  it("a secret that a child could open is detected: development reports it, production does not start", async () => {
    // Without bubblewrap any world-readable file would do; inside it, few files remain.
    const secret = "/proc/version";
    const development = await createSandboxPool({ ...options, secretPaths: [secret] });
    const { level } = development.stats();
    await development.close(0);
    const production = await createSandboxPool({ ...options, secretPaths: [secret], requireFullIsolation: true }).catch(
      (error: unknown) => error,
    );
    expect(level.level).to.not.equal("full");
    expect(level.missing).to.include(`children can open ${secret}`);
    expect(production)
      .to.be.instanceOf(IsolationTooWeak)
      .with.property("message")
      .that.contains(`children can open ${secret}`);
  });

  it("a program is found although its wrappers have not started it yet, so that its priority is set", async () => {
    await detectConfinement();
    const confinement = { filter: "child", withoutNetwork: true, reads: [], priority: GUEST_PRIORITY } as const;
    const confined = startConfined(["-e", "setInterval(() => undefined, 1_000)"], confinement);
    const pid = await confined.programId();
    const command = (): string => readFileSync(`/proc/${pid}/cmdline`, "latin1");
    await eventually("the program runs", () => /^[^\0]*node\0.*setInterval/s.test(command()));
    confined.kill();
  });

  it("a program that ended is not looked for any longer", async () => {
    await detectConfinement();
    const confinement = { filter: "child", withoutNetwork: true, reads: [], priority: GUEST_PRIORITY } as const;
    const confined = startConfined(["-e", ""], confinement);
    await new Promise((resolve) => confined.process.once("close", resolve));
    expect(await confined.programId()).to.equal(undefined);
  });

  it("a root key file and a socket of the keyholder are unreachable", async function () {
    await needs(this, "root", "bubblewrap");
    const key = join(folder, "root.key");
    const path = join(folder, "executor.sock");
    writeFileSync(key, "root key", { mode: 0o600 });
    const server = createServer().listen(path);
    const pool = await createSandboxPool({ ...options, secretPaths: [key, path], requireFullIsolation: true });
    expect(pool.stats().level.level).to.equal("full");
    await pool.close(0);
    server.close();
  });

  /** What a user of its own alone prevents. */
  const HELD_BY_USER = new Set([
    "reads the keyholder's memory",
    "reads the environment of what started it",
    "lists the open files of what started it",
    "signals what started it",
    "reads /etc/shadow",
    "becomes root again",
  ]);
  const attempts: [string, string, RegExp][] = [
    ["reads the keyholder's memory", `fs.openSync("/proc/" + process.ppid + "/mem")`, /EACCES|EPERM/],
    ["finds the keyholder", `fs.readFileSync("/proc/${process.pid}/status")`, /ENOENT/],
    [
      "reads the environment of what started it",
      `fs.readFileSync("/proc/" + process.ppid + "/environ")`,
      /EACCES|EPERM/,
    ],
    ["lists the open files of what started it", `fs.readdirSync("/proc/" + process.ppid + "/fd")`, /EACCES|EPERM/],
    ["signals what started it", `process.kill(process.ppid, 0)`, /EPERM/],
    ["reads /etc/shadow", `fs.readFileSync("/etc/shadow")`, /ENOENT|EACCES/],
    ["reads this project", `fs.readFileSync(${JSON.stringify(__filename)})`, /ENOENT|EACCES/],
    ["becomes root again", `process.setuid(0)`, /EPERM/],
    ["writes a file", `fs.writeFileSync("/sandbox-attempt-" + process.pid, "x")`, /EPERM/],
    ["opens a socket", `require("node:dgram").createSocket("udp4").bind()`, /EPERM/],
    ["starts a program", `(() => { throw child_process.spawnSync(process.execPath).error; })()`, /EPERM/],
  ];
  for (const [what, expression, code] of attempts) {
    it(`a compromised child never ${what}`, async function () {
      await needs(this, "root", ...(HELD_BY_USER.has(what) ? [] : (["bubblewrap"] as const)));
      const output = await asChild(
        `const fs = require("node:fs"), child_process = require("node:child_process"); ` +
          `process.on("uncaughtException", ({ code }) => console.log(code)); ${expression};`,
      );
      expect(output).to.match(code);
    });
  }

  it("a compromised child reaches no network address, including its own machine's", async function () {
    await needs(this, "root", "bubblewrap");
    const server = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as { port: number };
    const output = await asChild(
      `require("node:net").connect(${port}, "127.0.0.1").on("connect", () => ` +
        `console.log("connected")).on("error", (error) => console.log(error.code))`,
    );
    server.close();
    expect(output).to.equal("EPERM");
  });

  it("a child inherits no environment: a canary in the keyholder's never arrives", async () => {
    process.env.CANARY_SECRET = "canary-6f1b";
    const pool = await createSandboxPool(options);
    // One that is just being started cannot be read yet.
    let environments: string[] = [];
    await eventually("each child can be read", () => {
      const children = childrenOf(process.pid, "sandbox/child.js");
      try {
        environments = children.map(({ pid }) => readFileSync(`/proc/${pid}/environ`, "utf8"));
      } catch {
        return false;
      }
      return environments.length > 0;
    });
    await pool.close(0);
    delete process.env.CANARY_SECRET;
    for (const environment of environments) expect(environment).to.not.contain("canary-6f1b");
  });
});
