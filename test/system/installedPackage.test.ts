/**
 * The package as strangers install it from the service: plain `npm install` in an empty folder, and programs in every
 * form. Uses the registry that npm is configured for.
 */
import { expect } from "chai";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { gzipSync } from "node:zlib";
import { VERSION } from "../../protocol/version";
import { makeAccount } from "../support/journey";
import { useStack } from "../support/stack";

const ROOT = join(__dirname, "..", "..");
const MODULES = ["", "/cid", "/verify", "/policies", "/config", "/testing"].map((name) => `keywright${name}`);

/** Peers of several ages beside the package, and whether the entries over them work there. */
const PEERS: readonly { readonly beside: readonly string[]; readonly ethers: boolean; readonly viem: boolean }[] = [
  { beside: ["zod@3.25.76", "ethers@5.8.0", "viem@1.21.4", "esbuild@0.25.0"], ethers: false, viem: false },
  { beside: ["zod@4.1.0", "ethers@6.8.0", "viem@2.25.0"], ethers: true, viem: true },
  { beside: ["ethers@6.13.0", "viem@2.40.0"], ethers: true, viem: true },
  { beside: ["ethers@6.17.0", "viem@2.47.0"], ethers: true, viem: true },
  { beside: [], ethers: false, viem: false },
];

const JOURNEY = `
export async function journey(sdk, baseUrl) {
  const { createAccount, createClient, everyItem, cidOfCode, verifyService, ClientError } = sdk;
  const code = "async function main({ name }) { return 'hello ' + name; }";
  const { account, client } = await createAccount({ baseUrl }, { account_name: "Stranger", account_description: "" });
  const { group_id } = await client.addGroup({ group_name: "g", group_description: "" });
  await client.addActionToGroup({ group_id, action_ipfs_cid: await cidOfCode(code) });
  const names = [];
  for await (const group of everyItem(client.listGroups)) names.push(group.name);
  const bot = createClient({ baseUrl, apiKey: account.api_key });
  const run = await bot.runAction({ code, js_params: { name: names[0] } });
  const refused = await createClient({ baseUrl }).listGroups().catch((error) => error);
  if (!(refused instanceof ClientError)) throw new Error("a stranger may list groups");
  const wrong = await verifyService("ftp://keys.example").catch((error) => error);
  if (!(wrong instanceof ClientError)) throw new Error("entries have errors of their own");
  return run.response;
}
`;
const ESM = `
import * as sdk from "keywright";
import { cidOfCode } from "keywright/cid";
import { verifyService } from "keywright/verify";
import { journey } from "./journey.mjs";
console.log(await journey({ ...sdk, cidOfCode, verifyService }, process.argv[2]));
`;
const CJS = `
import("./journey.mjs").then(({ journey }) =>
  journey(Object.assign({}, ...["", "/cid", "/verify"].map((name) => require("keywright" + name))), process.argv[2])
    .then(console.log));
`;
const SIGNERS = `
import { createClient, STANDARD_ACTIONS } from "keywright";
import { keywrightSigner } from "keywright/ethers";
import { toKeywrightAccount } from "keywright/viem";
import { verifyMessage } from "ethers";
const [, , baseUrl, apiKey] = process.argv;
const client = createClient({ baseUrl, apiKey });
const { wallet_address: pkpId } = await client.createWallet({ name: "signer" });
await client.addGroup({ group_name: "s", group_description: "", pkp_ids_permitted: [pkpId],
  cid_hashes_permitted: [] }).then(({ group_id }) =>
  client.changeGroupActions({ id: group_id, add: [STANDARD_ACTIONS.message.cid], remove: [] }));
const signatures = [
  await keywrightSigner({ client, pkpId }).signMessage("hello"),
  await toKeywrightAccount({ client, pkpId }).signMessage({ message: "hello" }),
];
console.log(signatures.every((one) => verifyMessage("hello", one) === pkpId) ? "signed" : "wrong");
`;
const TYPED = `
import { createClient, type OwnerSigner } from "keywright";
import { makePolicy } from "keywright/policies";
import { verifyService } from "keywright/verify";
const client = createClient({ baseUrl: "http://127.0.0.1" });
export const right = client.addGroup({ group_name: "g", group_description: "" }).then((made) => made.group_id.length);
export const signer = (one: OwnerSigner): unknown => one.provider?.getNetwork();
export const code: Promise<number> = verifyService("http://127.0.0.1").then((report) => report.exitCode);
// @ts-expect-error there is no such field
void client.addGroup({ bogus: 1 });
// @ts-expect-error a group has no colour
void client.listGroups().then(({ items }) => items[0]?.colour);
// @ts-expect-error max is missing
void makePolicy("transfer-limits", { to: [], chain: 1 });
`;

describe("the package, packed and installed by plain npm", function () {
  this.timeout(600_000);
  const stack = useStack();
  let work: string;
  let tarball: string;

  before(async () => {
    work = mkdtempSync(join(tmpdir(), "installed-"));
    tarball = `${stack().baseUrl}/packages/keywright-${VERSION}.tgz`;
    // They come from the registry while the first tests run.
    otherRuntimes().catch(() => undefined);
  });
  after(() => rmSync(work, { recursive: true, force: true }));

  /** A folder with nothing beside our package, for all tests that need no other. */
  let alone: Promise<string> | undefined;
  const installedAlone = (): Promise<string> => (alone ??= installed("alone", []));

  /** A new folder with these packages beside ours. */
  async function installed(name: string, beside: readonly string[]): Promise<string> {
    const folder = join(work, name);
    mkdirSync(folder);
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    await run("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", tarball, ...beside], folder);
    return folder;
  }

  /** What becomes of each of these in one program: "loaded", or the error. */
  async function loaded(statements: readonly string[], folder: string): Promise<Record<string, string>> {
    const tries = statements.map((one) => {
      const name = JSON.stringify(one);
      return `try { ${one}; ends[${name}] = "loaded"; } catch (error) { ends[${name}] = String(error); }`;
    });
    const type = statements[0]?.startsWith("await") ? "module" : "commonjs";
    const program = ["const ends = {};", ...tries, "console.log(JSON.stringify(ends));"].join("\n");
    const printed = await run(process.execPath, ["--input-type", type, "-e", program], folder);
    return JSON.parse(printed) as Record<string, string>;
  }

  it("is served with the hash that npm locks, which the config document names, and packs as npm packs it", async () => {
    const folder = await installedAlone();
    const { packages } = JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8")) as {
      packages: Record<string, { integrity?: string }>;
    };
    const { config } = (await (await fetch(`${stack().baseUrl}/info`)).json()) as {
      config: { packages: Record<string, string> };
    };
    expect(packages["node_modules/keywright"]?.integrity).to.equal(config.packages[`keywright-${VERSION}.tgz`]);
    const built = join(ROOT, "dist", "sdk");
    const [packed] = JSON.parse(await run("npm", ["pack", "--dry-run", "--json"], built)) as [
      { files: { path: string }[] },
    ];
    for (const { path } of packed.files)
      expect(readFileSync(join(folder, "node_modules", "keywright", path)), path).to.deep.equal(
        readFileSync(join(built, path)),
      );
    expect(await run("npx", ["--yes", tarball, "--version"], folder)).to.equal(`${VERSION}\n`);
    expect((await fetch(`${stack().baseUrl}/packages/other-1.0.0.tgz`)).status).to.equal(404);
  });

  for (const { beside, ethers, viem } of PEERS)
    it(`installs and loads beside ${beside.join(", ") || "nothing"}`, async () => {
      const name = `beside-${beside.join("-").replace(/[^a-z0-9]/g, "")}`;
      const folder = beside.length === 0 ? await installedAlone() : await installed(name, beside);
      const peers = Object.entries({ ethers, viem });
      for (const load of [(name: string) => `await import("${name}")`, (name: string) => `require("${name}")`]) {
        const ends = await loaded([...MODULES, ...peers.map(([peer]) => `keywright/${peer}`)].map(load), folder);
        for (const name of MODULES) expect(ends[load(name)]).to.equal("loaded");
        for (const [peer, works] of peers)
          expect(ends[load(`keywright/${peer}`)]).to.match(
            works ? /^loaded$/ : new RegExp(`keywright/${peer} needs ${peer} .* npm install ${peer}@`),
          );
      }
      if (!ethers || !viem) return;
      writeFileSync(join(folder, "signers.mjs"), SIGNERS);
      const { apiKey } = await makeAccount(stack().baseUrl);
      expect(await run(process.execPath, ["signers.mjs", stack().baseUrl, apiKey], folder)).to.equal("signed\n");
    });

  it("reports a wrong field without any other package, with and without skipLibCheck", async () => {
    const folder = await installed("typed", ["typescript@5.9.3", "@types/node@24"]);
    writeFileSync(join(folder, "typed.ts"), TYPED);
    const strict = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "--types", "node"];
    // Whoever does not ask for exact optional properties asks for less.
    for (const more of [["--skipLibCheck"], ["--exactOptionalPropertyTypes"]])
      await run(process.execPath, ["node_modules/typescript/bin/tsc", ...strict, ...more, "typed.ts"], folder);
  });

  it("runs in Node 20, 22 and this one and in bun, as ES module and CommonJS", async () => {
    const folder = await installedAlone();
    for (const [file, text] of Object.entries({ "journey.mjs": JOURNEY, "esm.mjs": ESM, "cjs.cjs": CJS }))
      writeFileSync(join(folder, file), text);
    for (const program of [process.execPath, ...(await otherRuntimes())])
      for (const file of ["esm.mjs", "cjs.cjs"])
        expect(await run(program, [file, stack().baseUrl], folder), `${program} ${file}`).to.equal("hello g\n");
  });

  it("is bundled for browsers without any other package", async () => {
    const folder = await installed("browser", ["esbuild@0.25.0"]);
    writeFileSync(
      join(folder, "page.mjs"),
      'import { createClient } from "keywright"; globalThis.made = createClient;',
    );
    await run(
      "npx",
      ["--no", "--", "esbuild", "page.mjs", "--bundle", "--minify", "--format=esm", "--outfile=page.js"],
      folder,
    );
    expect(gzipSync(readFileSync(join(folder, "page.js"))).length).to.be.lessThan(20_000);
  });

  it("makes a project that installs, builds and deploys in Node 20, where local runs name what they need", async () => {
    const [node20 = ""] = await otherRuntimes();
    const { apiKey } = await makeAccount(stack().baseUrl);
    const env = {
      ...process.env,
      PATH: [join(node20, ".."), process.env["PATH"]].join(delimiter),
      KEYWRIGHT_URL: stack().baseUrl,
      KEYWRIGHT_API_KEY: apiKey,
    };
    const folder = await installedAlone();
    await run("npx", ["--no", "--", "keywright", "init", "greeter"], folder, env);
    const project = join(folder, "greeter");
    expect(readFileSync(join(project, "package.json"), "utf8")).to.include('"optionalDependencies"');
    await run("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline"], project, env);
    expect(existsSync(join(project, "node_modules", "isolated-vm"))).to.equal(false);
    const program = join(project, "node_modules", ".bin", "keywright");
    const keywright = (...args: string[]) => outcome(program, args, project, env);
    for (const args of [["build"], ["deploy", "--yes"]]) {
      const { code, all } = await keywright(...args);
      expect(code, all).to.equal(0);
    }
    const { code, all } = await keywright("dev", "sign", "--once", "--params", '{"name": "World"}');
    expect([code, all]).to.deep.equal([2, all]);
    expect(all).to.include("need Node 24 (this is 20.").and.to.include("Building and deploying need neither");
    await run("npm", ["run", "types"], project, env);
  });

  /** Node 20, Node 22 and bun, as npm packages. */
  let runtimes: Promise<string[]> | undefined;
  function otherRuntimes(): Promise<string[]> {
    return (runtimes ??= fetchRuntimes());
  }
  async function fetchRuntimes(): Promise<string[]> {
    const folder = join(work, "runtimes");
    mkdirSync(folder);
    writeFileSync(join(folder, "package.json"), "{}");
    const node = `node-linux-${process.arch}`;
    const bun = process.arch === "arm64" ? "bun-linux-aarch64" : "bun-linux-x64";
    // Not the package bun, which brings its programs for four kinds of Linux.
    const packages = [`node20@npm:${node}@20`, `node22@npm:${node}@22`, `@oven/${bun}@1`];
    await run(
      "npm",
      ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", ...packages],
      folder,
    );
    const modules = join(folder, "node_modules");
    return [
      join(modules, "node20", "bin", "node"),
      join(modules, "node22", "bin", "node"),
      join(modules, "@oven", bun, "bin", "bun"),
    ];
  }
});

type Env = Readonly<Record<string, string | undefined>>;

function outcome(command: string, args: readonly string[], cwd: string, env: Env = process.env) {
  return new Promise<{ code: number | null; out: string; all: string }>((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...env }, stdio: ["ignore", "pipe", "pipe"] });
    let out = "";
    let all = "";
    child.stdout.on("data", (chunk: Buffer) => ((out += chunk.toString()), (all += chunk.toString())));
    child.stderr.on("data", (chunk: Buffer) => (all += chunk.toString()));
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, out, all }));
  });
}

/** What it prints; it must exit with 0. */
async function run(command: string, args: readonly string[], cwd: string, env?: Env): Promise<string> {
  const { code, out, all } = await outcome(command, args, cwd, env);
  expect(code, `${command} ${args.join(" ")}\n${all}`).to.equal(0);
  return out;
}
