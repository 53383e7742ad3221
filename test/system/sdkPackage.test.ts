/**
 * `npm run sdk`: the package as another program uses it, in TypeScript and in plain Node, installed without this
 * repository.
 */
import { expect } from "chai";
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type * as Sdk from "../../client";
import type * as Cid from "../../client/cid";
import { useStack } from "../support/stack";

const ROOT = join(__dirname, "..", "..");
const CONSUMER = `
import { Wallet } from "ethers";
import { ClientError, createAccount, createChainSecuredClient, createClient, everyItem } from "keywright";
import type { MintedUsageKey } from "keywright";
import { cidOfCode } from "keywright/cid";
import { keywrightSigner } from "keywright/ethers";
import { verifyService } from "keywright/verify";

const CODE = "async function main({ name }: never) { return 'hello ' + name; }".replace(": never", "");

export async function journey(baseUrl: string): Promise<string> {
  const { account, client } = await createAccount({ baseUrl }, { account_name: "Consumer", account_description: "" });
  const { group_id } = await client.addGroup({ group_name: "g", group_description: "" });
  await client.addActionToGroup({ group_id, action_ipfs_cid: await cidOfCode(CODE) });
  const names: string[] = [];
  for await (const group of everyItem(client.listGroups)) names.push(group.name);
  const withKey = createClient({ baseUrl, apiKey: account.api_key });
  const run = await withKey.runAction({ code: CODE, js_params: { name: names.join() } });
  try {
    await createClient({ baseUrl }).listGroups();
  } catch (error) {
    if (error instanceof ClientError && error.code === "missing_credential") return String(run.response);
  }
  throw new Error("a stranger may list groups");
}

export async function typesAreThere(baseUrl: string, signer: Wallet): Promise<void> {
  const client = createClient({ baseUrl });
  // @ts-expect-error the field is called group_id
  await client.removeGroup({ groupId: 1 });
  // @ts-expect-error a list of groups has no such member
  (await client.listGroups()).items[0]?.colour;
  const { usage_api_key } = await client.addUsageApiKey({} as never);
  usage_api_key.toUpperCase();
  (await keywrightSigner({ client, pkpId: "0x" }).signMessage("x")).toUpperCase();
  (await verifyService(baseUrl)).exitCode.toFixed();
  const owner = await createChainSecuredClient({ baseUrl, signer });
  const minted: MintedUsageKey = (await owner.mintUsageKey()).minted;
  const made = await owner.addGroup({ group_name: "g", group_description: "" });
  made.group_id.toUpperCase();
  // @ts-expect-error a key's permissions are needed
  await owner.attachUsageKey(minted);
  // @ts-expect-error there is no such error code
  if ((new ClientError("aborted", "")).code === "no_such_code") return;
}
`;
/** Separate, since viem's own declarations include browser types and need `skipLibCheck` without them. */
const VIEM_CONSUMER = `
import { createClient } from "keywright";
import { toKeywrightAccount } from "keywright/viem";

export const sign = (baseUrl: string): Promise<\`0x\${string}\`> => {
  const account = toKeywrightAccount({ client: createClient({ baseUrl }), pkpId: "0x" });
  return account.signMessage({ message: "x" });
};
// @ts-expect-error the PKP is missing
toKeywrightAccount({ client: createClient({ baseUrl: "" }) });
`;
const OPTIONS = {
  target: "es2022",
  lib: ["es2023"],
  module: "nodenext",
  moduleResolution: "nodenext",
  strict: true,
  noEmitOnError: true,
  types: ["node"],
};

describe("the SDK as a package", function () {
  this.timeout(120_000);
  const stack = useStack();
  let folder: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), "sdk-consumer-"));
    const modules = join(folder, "node_modules");
    mkdirSync(join(modules, "@types"), { recursive: true });
    // Its peer dependencies, and what every TypeScript program for Node has.
    for (const name of ["ethers", "viem", "@types/node", "undici-types"])
      symlinkSync(join(ROOT, "node_modules", name), join(modules, name));
    cpSync(join(ROOT, "dist", "sdk"), join(modules, "keywright"), { recursive: true });
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    writeFileSync(join(folder, "consumer.ts"), CONSUMER);
    writeFileSync(join(folder, "viem.ts"), VIEM_CONSUMER);
    writeFileSync(
      join(folder, "viem.json"),
      JSON.stringify({
        compilerOptions: { ...OPTIONS, typeRoots: [join(modules, "@types")], skipLibCheck: true, noEmit: true },
        files: ["viem.ts"],
      }),
    );
    writeFileSync(
      join(folder, "tsconfig.json"),
      JSON.stringify({ compilerOptions: { ...OPTIONS, typeRoots: [join(modules, "@types")] }, files: ["consumer.ts"] }),
    );
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  /** The program's output; it must exit with 0. */
  function run(command: string, args: string[], cwd: string = ROOT): string {
    const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: "utf8" });
    expect(status, stdout + stderr).to.equal(0);
    return stdout.trim();
  }

  it("type-checks a consumer in strict mode, its own declarations included, and reports wrong fields", () => {
    expect(run(process.execPath, [join(ROOT, "node_modules", "typescript", "bin", "tsc"), "-p", folder])).to.equal("");
    expect(
      run(process.execPath, [join(ROOT, "node_modules", "typescript", "bin", "tsc"), "-p", join(folder, "viem.json")]),
    ).to.equal("");
  });

  it("passes the linters of packages, for every way a program may resolve it", () => {
    const installed = join(folder, "node_modules", "keywright");
    expect(run(join(ROOT, "node_modules", ".bin", "publint"), [installed, "--strict"])).to.include("All good");
    expect(run(join(ROOT, "node_modules", ".bin", "attw"), ["--pack", installed])).to.include("No problems found");
  });

  it("contains the program, the README and a source map for every bundle", () => {
    const installed = join(folder, "node_modules", "keywright");
    const { bin } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as { bin: { keywright: string } };
    expect(run(process.execPath, [join(installed, bin.keywright), "--help"])).to.include("Exit codes");
    expect(
      run(
        process.execPath,
        [
          "-e",
          'console.log(typeof require("keywright").createClient, typeof require("keywright/verify").verifyService)',
        ],
        folder,
      ),
    ).to.equal("function function");
    const readme = readFileSync(join(installed, "README.md"), "utf8");
    expect(readme).to.include("npx --no -- keywright");
    const { exports } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as {
      exports: Record<string, unknown>;
    };
    for (const path of Object.keys(exports).filter((one) => one !== "./package.json"))
      expect(readme).to.include(`| \`keywright${path.slice(1)}\` |`);
    for (const file of readdirSync(installed))
      if (file.endsWith(".mjs")) expect(existsSync(join(installed, `${file}.map`)), file).to.equal(true);
  });

  it("runs in plain Node", async () => {
    const { journey } = (await import(join(folder, "consumer.js"))) as {
      journey: (baseUrl: string) => Promise<string>;
    };
    expect(await journey(stack().baseUrl)).to.equal("hello g");
  });

  it("has no dependencies, and needs not even ethers where no wallet is used", async () => {
    const alone = mkdtempSync(join(tmpdir(), "sdk-alone-"));
    try {
      const installed = join(folder, "node_modules", "keywright");
      for (const file of ["package.json", "keywright.mjs", "cid.mjs"])
        copyFileSync(join(installed, file), join(alone, file));
      const { dependencies, scripts } = JSON.parse(readFileSync(join(alone, "package.json"), "utf8")) as Record<
        string,
        unknown
      >;
      expect([dependencies, scripts]).to.deep.equal([undefined, undefined]);
      const sdk = (await import(join(alone, "keywright.mjs"))) as typeof Sdk;
      const { cidOfCode } = (await import(join(alone, "cid.mjs"))) as typeof Cid;
      const client = sdk.createClient({ baseUrl: stack().baseUrl });
      expect(await client.getActionIpfsId("1")).to.equal(await cidOfCode("1"));
    } finally {
      rmSync(alone, { recursive: true, force: true });
    }
  });
});
