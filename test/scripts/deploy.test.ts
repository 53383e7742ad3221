/**
 * `npm run deploy` as an operator runs it: the key from the prompt, the deployment's file for everyone who needs it.
 */
import { expect } from "chai";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { id, type JsonRpcProvider, Wallet } from "ethers";
import type { Deployment } from "../../scripts/deployment";
import { DEVELOPMENT_DEPLOYER_KEY, startChain, type DevelopmentChain } from "../../scripts/dev/chain";
import { callExecutor } from "../../scripts/dev/payers";
import { freePort } from "../../scripts/dev/ports";
import { startProcess, waitUntil } from "../../scripts/dev/processes";
import {
  AccountManager__factory,
  ApplicationAllowlist__factory,
  ERC2771Forwarder__factory,
} from "../../typechain-types";
import { connect } from "../support/chain";
import { TEST_ROOT_COMMITMENT, writeTestRoot } from "../support/rootKey";

const PROGRAM = join(__dirname, "..", "..", "dist", "scripts", "deploy.js");
const ADMIN = Wallet.createRandom().address;
const ROOT_COMMITMENT = id("a root key");
const COMPOSE_HASH = "ab".repeat(32);

describe("the deploy script", function () {
  const folder = mkdtempSync(join(tmpdir(), "keywright-deploy-"));
  const file = join(folder, "base.json");
  let chain: DevelopmentChain;
  let provider: JsonRpcProvider;
  before(async () => {
    chain = await startChain({ port: await freePort() });
    provider = connect(chain.rpcUrl);
  });
  after(async () => {
    provider.destroy();
    await chain.process.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const deploy = (key: string, ...args: string[]) =>
    new Promise<{ status: number | null; output: string }>((resolve) => {
      const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ["pipe", "pipe", "pipe"] });
      const output: Buffer[] = [];
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => output.push(chunk));
      child.stdin.end(`${key}\n`);
      child.once("close", (status) => resolve({ status, output: Buffer.concat(output).toString("utf8") }));
    });
  const base = () => [
    ...["--network", "base", "--rpc", chain.rpcUrl, "--admin", ADMIN, "--out", file],
    ...["--root-commitment", ROOT_COMMITMENT],
  ];

  it("deploys all contracts and describes them in a file; payers wait for 7 days by default", async () => {
    const { status, output } = await deploy(DEVELOPMENT_DEPLOYER_KEY, ...base(), "--compose-hash", COMPOSE_HASH);
    expect(status, output).to.equal(0);
    const made = JSON.parse(readFileSync(file, "utf8")) as Deployment;
    const contract = AccountManager__factory.connect(made.contractAddress, provider);
    expect(await contract.admin()).to.equal(ADMIN);
    expect(await contract.payerDelaySeconds()).to.equal(7n * 86_400n);
    expect(await contract.trustedForwarder()).to.equal(made.forwarderAddress);
    expect(await contract.keyNamespace()).to.equal(made.keyNamespace);
    expect(await contract.rootCommitment())
      .to.equal(ROOT_COMMITMENT)
      .and.to.equal(made.rootCommitment);
    const list = ApplicationAllowlist__factory.connect(String(made.allowlistAddress), provider);
    expect([await list.admin(), await list.delaySeconds()]).to.deep.equal([ADMIN, 7n * 86_400n]);
    expect(await list.isComposeHashAllowed(`0x${COMPOSE_HASH}`)).to.equal(true);
    expect((await provider.getTransactionReceipt(made.transactionHash))?.blockNumber).to.equal(made.blockNumber);
    expect((await ERC2771Forwarder__factory.connect(made.forwarderAddress, provider).eip712Domain()).name).to.equal(
      "Keywright Forwarder",
    );
    expect(output).to.contain(made.contractAddress).and.not.contain(DEVELOPMENT_DEPLOYER_KEY.slice(2));
  });

  it("replaces no deployment's file, since another contract derives other keys", async () => {
    const before = [await provider.getBlockNumber(), readFileSync(file, "utf8")];
    const { status, output } = await deploy(DEVELOPMENT_DEPLOYER_KEY, ...base());
    expect([status, output]).to.deep.equal([
      1,
      `${file} describes a deployment already: name another --network or --out\n`,
    ]);
    expect([await provider.getBlockNumber(), readFileSync(file, "utf8")]).to.deep.equal(before);
  });

  it("accepts a custom delay and service name", async () => {
    rmSync(file);
    const { status, output } = await deploy(
      DEVELOPMENT_DEPLOYER_KEY,
      ...base(),
      "--payer-delay",
      "3600",
      "--service-name",
      "Acme",
    );
    expect(status, output).to.equal(0);
    const made = JSON.parse(readFileSync(file, "utf8")) as Deployment;
    expect(await AccountManager__factory.connect(made.contractAddress, provider).payerDelaySeconds()).to.equal(3_600n);
    expect((await ERC2771Forwarder__factory.connect(made.forwarderAddress, provider).eip712Domain()).name).to.equal(
      "Acme Forwarder",
    );
  });

  it("asks the keyholder that has no contract yet for the commitment, and deploys nothing without it", async () => {
    rmSync(file, { force: true });
    const before = await provider.getBlockNumber();
    const unbound = base().slice(0, -2);
    const refused = await deploy(DEVELOPMENT_DEPLOYER_KEY, ...unbound);
    expect([refused.status, refused.output]).to.satisfy(
      ([ended, said]: [number, string]) =>
        ended === 1 && said.includes("start the keyholder with CONTRACT_ADDRESS=none"),
      refused.output,
    );
    expect(await provider.getBlockNumber()).to.equal(before);
    const socket = join(folder, "executor.sock");
    writeTestRoot(join(folder, "root.key"));
    const keyholder = startProcess({
      name: "executor",
      command: process.execPath,
      args: [join(__dirname, "../../dist/executor/main.js")],
      env: {
        PATH: process.env.PATH,
        CONTRACT_ADDRESS: "none",
        EXECUTOR_SOCKET: socket,
        ROOT_KEY_FILE: join(folder, "root.key"),
      },
      onLine: () => undefined,
    });
    try {
      const listens = async (): Promise<boolean> => existsSync(socket);
      await waitUntil("the keyholder", listens, { timeoutMs: 30_000, died: keyholder.died });
      const payers = await callExecutor(socket, "payers", { count: 1 }).catch((error: unknown) => String(error));
      expect(payers).to.match(/503 to payers: .*has no contract/);
      process.env.EXECUTOR_SOCKET = socket;
      const { status, output } = await deploy(DEVELOPMENT_DEPLOYER_KEY, ...unbound);
      expect(status, output).to.equal(0);
    } finally {
      delete process.env.EXECUTOR_SOCKET;
      await keyholder.stop();
    }
    const made = JSON.parse(readFileSync(file, "utf8")) as Deployment;
    const contract = AccountManager__factory.connect(made.contractAddress, provider);
    expect(await contract.rootCommitment()).to.equal(TEST_ROOT_COMMITMENT);
  });

  it("deploys the allow-list alone, before the machine that has the root key", async () => {
    rmSync(file, { force: true });
    const list = ["--allowlist-only", "--compose-hash", COMPOSE_HASH];
    const { status, output } = await deploy(DEVELOPMENT_DEPLOYER_KEY, ...base().slice(0, -2), ...list);
    expect([status, existsSync(file)], output).to.deep.equal([0, false]);
    const [, address = ""] = /ApplicationAllowlist (0x\w+)/.exec(output) ?? [];
    expect(await ApplicationAllowlist__factory.connect(address, provider).admin()).to.equal(ADMIN);
  });

  it("names an invalid option, and deploys nothing", async () => {
    rmSync(file, { force: true });
    const before = await provider.getBlockNumber();
    const wrong = [
      [["--network", "base"], "usage: npm run deploy"],
      [[...base(), "--admin", "0x12"], "--admin 0x12 is not an address"],
      [[...base(), "--root-commitment", "0x12"], "--root-commitment 0x12 is not 64 hex digits"],
      [[...base(), "--payer-delay", "a week"], "--payer-delay is a whole number of seconds"],
      [[...base(), "--payer-delay", ""], "--payer-delay is a whole number of seconds"],
      [[...base(), "--allowlist-delay", "1e3"], "--allowlist-delay is a whole number of seconds"],
      [
        [...base(), "--allowlist", ADMIN, "--compose-hash", COMPOSE_HASH],
        "--compose-hash and --allowlist-delay are of",
      ],
      [[...base(), "--allowlist-only"], "--allowlist-only takes --compose-hash"],
      [[...base(), "--service-name", "two words"], "--service-name is a letter"],
    ] as const;
    for (const [args, sentence] of wrong) {
      const { status, output } = await deploy(DEVELOPMENT_DEPLOYER_KEY, ...args);
      expect([status, output]).to.satisfy(
        ([ended, said]: [number, string]) => ended === 1 && said.includes(sentence),
        output,
      );
    }
    expect([await provider.getBlockNumber(), existsSync(file)]).to.deep.equal([before, false]);
  });

  it("does not echo an invalid key", async () => {
    const { status, output } = await deploy("0xnot-a-key-but-secret", ...base());
    expect([status, existsSync(file)]).to.deep.equal([1, false]);
    expect(output).to.not.contain("not-a-key-but-secret");
  });
});
