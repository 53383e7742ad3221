/** A keyholder that does not start, or stops before it serves: it says why. */
import { expect } from "chai";
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { TestChain } from "../support/executor";

describe("a refused start", function () {
  this.timeout(60_000);
  let chain: TestChain;
  before(async () => {
    chain = await TestChain.start();
  });
  after(() => chain?.stop());
  const start = (env: Record<string, string>): { status: number | null; output: string } => {
    const socket = join(mkdtempSync(join(tmpdir(), "keywright-start-")), "executor.sock");
    const base = {
      PATH: process.env.PATH ?? "",
      RPC_URLS: chain.rpcUrl,
      CHAIN_ID: "31337",
      CONTRACT_ADDRESS: chain.contractAddress,
      EXECUTOR_SOCKET: socket,
    };
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(__dirname, "../../dist/executor/main.js")], {
      env: { ...base, ...env },
      encoding: "utf8",
      timeout: 20_000,
    });
    rmSync(join(socket, ".."), { recursive: true, force: true });
    return { status, output: stdout + stderr };
  };

  it("exits with the list of what to fix when the configuration is wrong", () => {
    const { status, output } = start({ RPC_URLS: "", TEE: "sgx" });
    expect(status).to.equal(2);
    expect(output).to.contain("RPC_URLS is needed").and.to.contain("TEE");
  });

  it("exits when the address has no contract, or another chain answers", () => {
    const nowhere = start({ CONTRACT_ADDRESS: `0x${"12".repeat(20)}` });
    expect([nowhere.status, nowhere.output]).to.satisfy(
      ([status, output]: [number, string]) => status === 1 && output.includes("there is no AccountManager"),
    );
    const elsewhere = start({ CHAIN_ID: "1" });
    expect([elsewhere.status, elsewhere.output]).to.satisfy(
      ([status, output]: [number, string]) => status === 1 && output.includes("CHAIN_ID is 1"),
    );
  });

  it("exits at once when it is asked to stop while it waits for the chain", async () => {
    const folder = mkdtempSync(join(tmpdir(), "keywright-start-"));
    const env = {
      PATH: process.env.PATH,
      RPC_URLS: "http://127.0.0.1:9",
      CHAIN_ID: "31337",
      CONTRACT_ADDRESS: chain.contractAddress,
      EXECUTOR_SOCKET: join(folder, "executor.sock"),
    };
    const child = spawn(process.execPath, [join(__dirname, "../../dist/executor/main.js")], { env, stdio: "ignore" });
    const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
    while (!existsSync(env.EXECUTOR_SOCKET)) await sleep(20);
    child.kill("SIGTERM");
    expect(await ended).to.equal(0);
    expect(existsSync(env.EXECUTOR_SOCKET)).to.equal(false);
    rmSync(folder, { recursive: true });
  });

  it("exits when the root key file is readable by others", () => {
    const folder = mkdtempSync(join(tmpdir(), "keywright-root-"));
    const file = join(folder, "root.key");
    writeFileSync(file, Buffer.alloc(32, 1));
    chmodSync(file, 0o644);
    const { status, output } = start({ ROOT_KEY_FILE: file });
    expect(status).to.equal(1);
    expect(output).to.contain("chmod 600");
    rmSync(folder, { recursive: true });
  });
});
