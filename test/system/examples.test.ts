/** Each example's README, run unchanged against a service of its own; the documented output is printed. */
import { expect } from "chai";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startChain, type DevelopmentChain } from "../../scripts/dev/chain";
import { freePort } from "../../scripts/dev/ports";
import { startStack, type Stack } from "../../scripts/dev/stack";
import { bash, commandsOf, programFolder, promisedLines, surroundings } from "../support/bash";

const ROOT = join(__dirname, "..", "..");
const EXAMPLES = join(ROOT, "examples");
const FOLDERS = readdirSync(EXAMPLES, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
const OTHER_CHAIN_ID = 31_338n;
/** What the READMEs tell readers to install. */
const PACKAGES = [
  "ethers",
  "@safe-global/safe-smart-account",
  "@modelcontextprotocol/sdk",
  "solc",
  "@openzeppelin/contracts",
];

describe("the examples", function () {
  this.timeout(90_000);
  let folder: string;
  let stack: Stack;
  let other: DevelopmentChain;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "examples-"));
    cpSync(EXAMPLES, folder, { recursive: true });
    installPackages();
    stack = await startStack({ env: { FETCH_ALLOW_HOSTS: "127.0.0.1" } });
    other = await startChain({ port: await freePort(), chainId: OTHER_CHAIN_ID });
  });
  after(async () => {
    await other?.process.stop();
    await stack?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  function installPackages(): void {
    const modules = join(folder, "node_modules");
    for (const name of PACKAGES) {
      mkdirSync(join(modules, name, ".."), { recursive: true });
      symlinkSync(join(ROOT, "node_modules", name), join(modules, name));
    }
    cpSync(join(ROOT, "dist", "sdk"), join(modules, "keywright"), { recursive: true });
  }

  it("are those listed on the page", () => {
    const page = readFileSync(join(EXAMPLES, "README.md"), "utf8");
    expect([...page.matchAll(/^\| \[([a-z-]+)\]/gm)].map(([, name]) => name).sort()).to.deep.equal(FOLDERS.sort());
  });

  for (const name of FOLDERS) {
    it(name, async () => {
      const env = surroundings(programFolder(folder), {
        KEYWRIGHT_URL: stack.baseUrl,
        KEYWRIGHT_CONFIG: join(folder, name, "logins.json"),
        RPC_URL: stack.rpcUrl,
        OTHER_RPC_URL: other.rpcUrl,
      });
      const read = (file: string): string => readFileSync(join(EXAMPLES, file), "utf8");
      const page = read(join(name, "README.md"));
      const { code, text } = await bash(
        [...commandsOf(read("README.md")), ...commandsOf(page)].join("\n"),
        join(folder, name),
        env,
      );
      expect(code, text).to.equal(0);
      const promised = promisedLines(page);
      expect(promised.length).to.be.greaterThan(0);
      let lines = text.split("\n");
      for (const line of promised) {
        const at = lines.findIndex((one) => line.test(one));
        expect(at, `${String(line)} in\n${text}`).to.be.greaterThan(-1);
        lines = lines.slice(at + 1);
      }
    });
  }
});
