/** Access to the keyholder's memory, tried by processes with the same user, groups and capabilities. */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { expect } from "chai";
import { needs } from "../support/needs";

const MODULE = join(__dirname, "../../dist/executor/confinement/keyholder.js");
/** Both sides: the capabilities of root, except reading other processes. */
const RIGHTS = ["--bounding-set=-sys_ptrace,-perfmon,-sys_admin", "--inh-caps=-all", "--"];
const READ = `const { closeSync, openSync } = require("fs");
  try { closeSync(openSync(process.argv[1])); console.log("read"); } catch (error) { console.log(error.code); }`;

describe("the keyholder's memory", function () {
  this.timeout(20_000);
  let keyholder: ChildProcess;
  afterEach(() => (keyholder as ChildProcess | undefined)?.kill("SIGKILL"));

  async function start(close: boolean): Promise<string> {
    const program =
      `const { protectOwnMemory } = require(${JSON.stringify(MODULE)}); ` +
      `console.log(JSON.stringify(${close ? "protectOwnMemory()" : "[]"})); setInterval(() => {}, 1000);`;
    keyholder = spawn("setpriv", [...RIGHTS, process.execPath, "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    return new Promise((resolve) => keyholder.stdout?.once("data", (text: Buffer) => resolve(text.toString().trim())));
  }
  const look = (file: string): string =>
    spawnSync("setpriv", [...RIGHTS, process.execPath, "-e", READ, `/proc/${keyholder.pid}/${file}`], {
      encoding: "utf8",
    }).stdout.trim();

  it("is readable by its own user unless it is protected: otherwise this test could not fail", async function () {
    await needs(this, "root");
    await start(false);
    expect(look("mem")).to.equal("read");
    expect(look("environ")).to.equal("read");
  });

  it("cannot be read once it is protected, nor can its environment and its open files", async function () {
    await needs(this, "root");
    expect(await start(true)).to.equal("[]");
    expect(look("mem")).to.be.oneOf(["EACCES", "EPERM"]);
    expect(look("environ")).to.be.oneOf(["EACCES", "EPERM"]);
    expect(look("maps")).to.be.oneOf(["EACCES", "EPERM"]);
  });

  it("is never written to a core dump", async function () {
    await start(true);
    const limits = spawnSync(
      "prlimit",
      ["--pid", String(keyholder.pid), "--core", "--noheadings", "--raw", "-o", "SOFT,HARD"],
      { encoding: "utf8" },
    );
    expect(limits.stdout.trim()).to.equal("0 0");
  });
});
