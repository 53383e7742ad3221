/**
 * From an empty folder to a signature with the package alone, as an outside developer: init, dev, test, build, deploy
 * twice, run; timed. A project's packages are linked from this repository, since tests download nothing.
 */
import { expect } from "chai";
import { execFileSync, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { verifyMessage } from "ethers";
import { compileCache } from "../../scripts/dev/processes";
import { bash, commandsOf, surroundings } from "../support/bash";
import { expectInTime } from "../support/inTime";
import { makeAccount } from "../support/journey";
import { useStack } from "../support/stack";

const ROOT = join(__dirname, "..", "..");
/** What `npm install` brings to a new project, and its dependencies. */
const LINKED = ["esbuild", "ethers", "mocha", "typescript", "zod", "undici-types", "@types/node", "@types/mocha"];
/** A process that runs actions can read these folders, and follows no links to them. */
const COPIED = ["isolated-vm", "node-gyp-build"];
const WITHIN_MS = 5 * 60_000;
const PAGE = join(ROOT, "docs", "projects.md");

interface Result {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

describe("a project of actions", function () {
  this.timeout(180_000);
  const stack = useStack();
  let startedAt = 0;
  let folder: string;
  let env: Record<string, string | undefined>;

  before(async () => {
    startedAt = Date.now();
    folder = mkdtempSync(join(tmpdir(), "project-"));
    const modules = join(folder, "node_modules");
    mkdirSync(join(modules, "@types"), { recursive: true });
    for (const name of LINKED) symlinkSync(join(ROOT, "node_modules", name), join(modules, name));
    for (const name of COPIED) cpSync(join(ROOT, "node_modules", name), join(modules, name), { recursive: true });
    cpSync(join(ROOT, "dist", "sdk"), join(modules, "keywright"), { recursive: true });
    const { apiKey } = await makeAccount(stack().baseUrl);
    const { PATH, HOME } = process.env;
    env = {
      PATH,
      HOME,
      ...compileCache(),
      KEYWRIGHT_URL: stack().baseUrl,
      KEYWRIGHT_API_KEY: apiKey,
      KEYWRIGHT_CONFIG: join(folder, "logins.json"),
    };
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const start = (...args: string[]): ChildProcess =>
    spawn(process.execPath, [join(folder, "node_modules", "keywright", "cli", "keywright.mjs"), ...args], {
      cwd: folder,
      env,
    });
  const run = (...args: string[]): Promise<Result> =>
    new Promise((resolve) => {
      const child = start(...args);
      let out = "";
      let err = "";
      child.stdout?.on("data", (chunk: Buffer) => (out += chunk.toString()));
      child.stderr?.on("data", (chunk: Buffer) => (err += chunk.toString()));
      child.stdin?.end();
      child.once("close", (code) => resolve({ code, out, err }));
    });
  async function ok<T = Record<string, unknown>>(...args: string[]): Promise<T> {
    const { code, out, err } = await run("--json", ...args);
    expect(code, out + err).to.equal(0);
    return JSON.parse(out) as T;
  }

  it("goes from an empty folder to a checked signature by the commands of docs/projects.md", async () => {
    const began = Date.now();
    const empty = mkdtempSync(join(tmpdir(), "empty-"));
    const bin = join(folder, "bin");
    for (const place of [bin, join(folder, "node_modules", ".bin")]) mkdirSync(place);
    symlinkSync(join("..", "typescript/bin/tsc"), join(folder, "node_modules", ".bin", "tsc"));
    const program = join(folder, "node_modules", "keywright", "cli", "keywright.mjs");
    symlinkSync(join("..", "keywright/cli/keywright.mjs"), join(folder, "node_modules", ".bin", "keywright"));
    const npx = execFileSync("which", ["npx"], { encoding: "utf8" }).trim();
    // The only difference from a reader's machine: packages are present, not downloaded.
    const stubs = {
      npm: `[ "$*" = install ] && ln -s "${join(folder, "node_modules")}" node_modules`,
      npx: `[ "$1" != --yes ] || { shift 2; exec node "${program}" "$@"; }; exec "${npx}" "$@"`,
    };
    for (const [name, script] of Object.entries(stubs))
      writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const shell = surroundings(bin, {
      KEYWRIGHT_URL: stack().baseUrl,
      KEYWRIGHT_CONFIG: join(empty, "logins.json"),
    });
    const { code, text } = await bash(commandsOf(readFileSync(PAGE, "utf8")).join("\n"), empty, shell);
    expect(code, text).to.equal(0);
    expect(text).to.include("2 passing").and.to.include("+ group greeting").and.to.include("Nothing to do.");
    expectInTime(Date.now() - began, WITHIN_MS);
    rmSync(empty, { recursive: true });
  });

  it("is created by init, and nothing is overwritten", async () => {
    expect((await ok<{ files: string[] }>("init")).files).to.include.members([
      "keywright.config.ts",
      "actions/sign.ts",
      "test/sign.test.ts",
      ".github/workflows/check.yml",
    ]);
    const again = await run("init");
    expect([again.code, again.err]).to.deep.equal([2, again.err]);
    expect(again.err).to.include("nothing was written");
  });

  it("type-checks, with the globals of actions and no others", () => {
    const tsc = (): { status: number | null; stdout: string } =>
      spawnSync(
        process.execPath,
        [join(ROOT, "node_modules", "typescript", "bin", "tsc"), "-p", folder, "--allowImportingTsExtensions"],
        { encoding: "utf8" },
      );
    const { status, stdout } = tsc();
    expect(status, stdout).to.equal(0);
    writeFileSync(join(folder, "actions", "wrong.ts"), "export default () => Actions.signMessage({ pkp: 1 });\n");
    expect(tsc().stdout).to.match(/wrong\.ts.*'pkp' does not exist/);
    rmSync(join(folder, "actions", "wrong.ts"));
  });

  it("runs in the real sandbox, ops recorded, and again on every save", async () => {
    const once = await ok<{ response: { signature: string; message: string }; pkp_id: string; recorded: object[] }>(
      "dev",
      "sign",
      "--once",
      "--params",
      '{"name": "World"}',
    );
    expect(verifyMessage("Hello, World!", once.response.signature)).to.equal(once.pkp_id);
    expect(once.recorded).to.deep.equal([
      { kind: "op", name: "signMessage", args: { pkpId: once.pkp_id, message: "Hello, World!" }, ok: true },
    ]);

    const watching = start("--json", "dev", "sign", "--params", '{"name": "World"}');
    let out = "";
    watching.stdout?.on("data", (chunk: Buffer) => (out += chunk.toString()));
    const runs = async (count: number): Promise<string[]> => {
      while (out.split("\n").length <= count && watching.exitCode === null)
        await new Promise((resolve) => setTimeout(resolve, 50));
      return out.trim().split("\n");
    };
    await runs(1);
    const file = join(folder, "actions", "sign.ts");
    const source = readFileSync(file, "utf8");
    writeFileSync(file, source.replace("Hello,", "Goodbye,"));
    const [first = "", second = ""] = await runs(2);
    writeFileSync(file, source);
    await runs(3);
    watching.kill("SIGTERM");
    expect(
      [first, second].map((line) => (JSON.parse(line) as { response: { message: string } }).response.message),
    ).to.deep.equal(["Hello, World!", "Goodbye, World!"]);
  });

  it("is tested in the same sandbox, and a failing test fails", async () => {
    const { code, out, err } = await run("test");
    expect(code, out + err).to.equal(0);
    expect(out).to.include("2 passing");
    writeFileSync(
      join(folder, "test", "red.test.ts"),
      'import assert from "node:assert";\nit("is red", () => assert.equal(1 as number, 2));\n',
    );
    expect((await run("test")).code).to.equal(1);
    rmSync(join(folder, "test", "red.test.ts"));
  });

  it("ends its tests also where one has left a sandbox open", async () => {
    const file = join(folder, "test", "open.test.ts");
    writeFileSync(
      file,
      'import { localAction } from "keywright/testing";\n' +
        'it("leaves it open", () => localAction("sign", { project: "." }));\n',
    );
    const { code, out, err } = await run("test");
    expect(code, out + err).to.equal(0);
    expect(out).to.include("3 passing");
    rmSync(file);
  });

  it("builds to the same bytes in another folder, imports and the sandbox's ethers included", async () => {
    writeFileSync(
      join(folder, "actions", "sum.ts"),
      'import { sum } from "./lib/sum";\nimport { id } from "ethers";\nexport default ({ a }: { a: number[] }) => ' +
        '({ sum: sum(a), id: id("x") });\n',
    );
    mkdirSync(join(folder, "actions", "lib"));
    writeFileSync(
      join(folder, "actions", "lib", "sum.ts"),
      "/** A comment. */\nexport const sum = (all: number[]): number => all.reduce((one, other) => one + other, " +
        "0);\nexport const main = 1;\n",
    );
    const config = readFileSync(join(folder, "keywright.config.ts"), "utf8");
    writeFileSync(
      join(folder, "keywright.config.ts"),
      config.replace("actions: {", 'actions: { sum: { file: "actions/sum.ts" },'),
    );
    const built = await ok<{ action: string; cid: string; bytes: number }[]>("build");
    const other = mkdtempSync(join(tmpdir(), "elsewhere-"));
    try {
      const copied = spawnSync("cp", [
        "-r",
        ...["keywright.config.ts", "actions", "package.json", "node_modules"].map((name) => join(folder, name)),
        other,
      ]);
      expect(copied.status).to.equal(0);
      const program = join(other, "node_modules", "keywright", "cli", "keywright.mjs");
      const again = spawnSync(process.execPath, [program, "--json", "build"], { cwd: other, encoding: "utf8" });
      expect(JSON.parse(again.stdout)).to.deep.equal(built);
    } finally {
      rmSync(other, { recursive: true, force: true });
    }
    expect(built.find(({ action }) => action === "sum")?.bytes).to.be.lessThan(3_000);
    const outcome = await ok<{ response: { sum: number } }>("dev", "sum", "--once", "--params", '{"a": [1, 2, 3]}');
    expect(outcome.response).to.deep.equal({
      sum: 6,
      id: "0x7521d1cadbcfa91eec65aa16715b94ffc1c9654ba57ea2ef1a2127bca1127a83",
    });
    writeFileSync(join(folder, "keywright.config.ts"), config);
  });

  it("records the hashes of imported modules and their imports, and refuses a changed one later", async () => {
    const modules: Record<string, string> = {
      "/add@1.0.0/+esm": 'import { one } from "/one@2.0.0/+esm"; export const add = (n) => n + one;',
      "/one@2.0.0/+esm": "export const one = 1;",
    };
    const server = await serve(modules);
    const config = readFileSync(join(folder, "keywright.config.ts"), "utf8");
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    writeFileSync(
      join(folder, "actions", "add.ts"),
      '// @ts-expect-error fetched when it is built\nimport { add } from "add@1.0.0";\nexport default ({ n }: { n: ' +
        "number }) => add(n);\n",
    );
    writeFileSync(
      join(folder, "keywright.config.ts"),
      config.replace("actions: {", `moduleOrigin: "${origin}/", actions: { add: { file: "actions/add.ts" },`),
    );
    await ok("build");
    const lock = JSON.parse(readFileSync(join(folder, "keywright.lock.json"), "utf8")) as {
      modules: Record<string, string>;
    };
    const hash = (text: string): string => `sha384-${createHash("sha384").update(text).digest("base64")}`;
    expect(lock.modules).to.deep.equal(
      Object.fromEntries(Object.entries(modules).map(([path, text]) => [origin + path, hash(text)])),
    );
    expect((await ok<{ response: number }>("dev", "add", "--once", "--params", '{"n": 1}')).response).to.equal(2);
    modules["/one@2.0.0/+esm"] = "export const one = 1000;";
    const changed = await run("build");
    expect([changed.code, changed.err]).to.deep.equal([2, changed.err]);
    expect(changed.err).to.include("the module has changed");
    writeFileSync(
      join(folder, "keywright.config.ts"),
      config.replace("actions: {", 'moduleOrigin: "http://modules.example/", actions: {'),
    );
    const overHttp = await run("build");
    expect([overHttp.code, overHttp.err]).to.deep.equal([2, overHttp.err]);
    expect(overHttp.err).to.include("use https");
    writeFileSync(join(folder, "keywright.config.ts"), config);
    rmSync(join(folder, "keywright.lock.json"));
    server.close();
  });

  it("is deployed as a difference, shown first; a second deployment changes nothing", async () => {
    const shown = await run("deploy", "--dry-run");
    expect([
      shown.code,
      shown.out
        .trim()
        .split("\n")
        .map((line) => line.slice(0, 12)),
    ]).to.deep.equal([
      0,
      ["+ action sig", "+ pkp greete", "+ group gree", "+ group gree", "+ group gree", "+ key bot"],
    ]);
    expect((await run("deploy")).code, "not confirmed").to.equal(2);
    expect((await ok<{ steps: unknown[] }>("group", "list")) as unknown).to.deep.include({ total: 0 });
    await ok("deploy", "--yes");
    expect(statSync(join(folder, "keywright.secrets.json")).mode & 0o777).to.equal(0o600);
    const again = await run("deploy", "--yes");
    expect(again.out).to.include("Nothing to do.");
    expect(again.err).to.equal("");
  });

  it("makes nothing where the file of secrets cannot be read, and never leaves one readable by others", async () => {
    const file = join(folder, "keywright.secrets.json");
    const secrets = readFileSync(file, "utf8");
    const config = readFileSync(join(folder, "keywright.config.ts"), "utf8");
    writeFileSync(join(folder, "keywright.config.ts"), config.replace("keys: {", "keys: { second: {},"));
    writeFileSync(file, secrets.slice(0, -3));
    const { code, err } = await run("deploy", "--yes");
    expect([code, err]).to.deep.equal([2, err]);
    expect(err).to.include("keywright.secrets.json").and.to.not.include(secrets.slice(12, 40));
    expect((await ok<{ items: { name: string }[] }>("key", "list")).items.map(({ name }) => name)).to.deep.equal([
      "bot",
    ]);
    writeFileSync(file, secrets);
    chmodSync(file, 0o644);
    await ok("deploy", "--yes");
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    const both = JSON.parse(readFileSync(file, "utf8")) as Record<string, string>;
    expect(Object.keys(both)).to.deep.equal(["bot", "second"]);
    writeFileSync(join(folder, "keywright.config.ts"), config);
    writeFileSync(file, secrets);
  });

  it("is not deployed where two items of the account have one of its names", async () => {
    const { wallet_address } = await ok<{ wallet_address: string }>("pkp", "create", "--name", "greeter");
    const { api_key_hash } = await ok<{ api_key_hash: string }>("key", "create", "bot");
    for (const what of ["two PKPs named greeter", "two keys named bot"]) {
      const { code, err } = await run("deploy", "--yes");
      expect([code, err]).to.deep.equal([2, err]);
      expect(err).to.include(what);
      if (what.includes("PKPs")) await ok("pkp", "rename", wallet_address, "other");
    }
    await ok("key", "revoke", api_key_hash);
    expect((await run("deploy")).out).to.include("Nothing to do.");
  });

  it("says which key's secret is missing, and how to replace the key", async () => {
    const file = join(folder, "keywright.secrets.json");
    const secrets = readFileSync(file, "utf8");
    rmSync(file);
    const { err } = await run("deploy");
    expect(err).to.match(/The key bot exists .*not in keywright.secrets.json.*key revoke 0x[0-9a-f]{64}/);
    writeFileSync(file, secrets, { mode: 0o600 });
  });

  it("updates changed items and removes those no longer configured", async () => {
    const file = join(folder, "actions", "sign.ts");
    writeFileSync(file, readFileSync(file, "utf8").replace("1 to 40 letters and spaces", "1 to 40 letters or spaces"));
    const { steps } = await ok<{ steps: string[] }>("deploy", "--yes");
    expect(steps.map((step) => step.split(" 0x")[0]?.split(" Qm")[0])).to.deep.equal([
      "+ action sign",
      "+ group greeting: action sign",
      "- group greeting: action",
    ]);
    expect((await ok<{ steps: string[] }>("deploy", "--yes")).steps).to.deep.equal([]);
  });

  it("runs with the key it created, and the signature is the PKP's; all within five minutes", async () => {
    const { bot } = JSON.parse(readFileSync(join(folder, "keywright.secrets.json"), "utf8")) as { bot: string };
    const { pkps } = await ok<{ pkps: { greeter: string } }>("deploy");
    env["KEYWRIGHT_API_KEY"] = bot;
    const answer = await ok<{ response: { signature: string } }>(
      "run",
      "build/sign.js",
      "--params",
      JSON.stringify({ pkpId: pkps.greeter, name: "World" }),
    );
    expect(verifyMessage("Hello, World!", answer.response.signature)).to.equal(pkps.greeter);
    expect(existsSync(join(folder, ".keywright-test"))).to.equal(false);
    expectInTime(Date.now() - startedAt, WITHIN_MS);
  });
});

function serve(modules: Readonly<Record<string, string>>): Promise<Server> {
  const server = createServer((request, response) => {
    const text = modules[request.url ?? ""];
    response.writeHead(text === undefined ? 404 : 200, { "content-type": "text/javascript" }).end(text ?? "");
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}
