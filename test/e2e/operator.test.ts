/** The operator's commands about payers, as typed on a command line. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { expect } from "chai";
import { Interface, JsonRpcProvider, Wallet } from "ethers";
import { DEVELOPMENT_DEPLOYER_KEY } from "../../scripts/dev/chain";
import { freePort } from "../../scripts/dev/ports";
import { compileCache } from "../../scripts/dev/processes";
import { AccountManager__factory } from "../../typechain-types";
import { useStack } from "../support/stack";

const OPERATOR = join(__dirname, "..", "..", "dist", "scripts", "operator.js");

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function operator(args: readonly string[], env: Record<string, string>, input = ""): Promise<Ended> {
  const child = spawn(process.execPath, [OPERATOR, ...args], {
    env: { PATH: process.env.PATH, ...compileCache(), ...env },
  });
  let [out, err] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  child.stdin.end(input);
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, out, err })));
}

describe("operator commands", function () {
  this.timeout(60_000);
  const stack = useStack();
  const environment = (): Record<string, string> => ({
    RPC_URLS: stack().rpcUrl,
    CONTRACT_ADDRESS: stack().contractAddress,
    EXECUTOR_SOCKET: stack().executorSocket,
  });

  it("list payers with their balances", async () => {
    const { code, out } = await operator(["payers"], environment());
    expect(code).to.equal(0);
    const lines = out.trim().split("\n");
    expect(lines[1]).to.match(/^0 +0x[0-9a-fA-F]{40} +\S+ +admin payer$/);
    expect(lines.slice(2, -1).every((line) => /^\d+ +0x[0-9a-fA-F]{40} +\S+ +registered$/.test(line))).to.equal(true);
    expect(lines.at(-1)).to.equal("Additions wait for 0 seconds once there is a managed account.");
  });

  it("print the transaction for a multisig and send nothing", async () => {
    const stranger = Wallet.createRandom().address;
    const { code, out } = await operator(["add-payer", stranger], environment());
    expect(code).to.equal(0);
    const data = /data +(0x[0-9a-f]+)/.exec(out)?.[1] ?? "";
    expect(out).to.contain(stack().contractAddress);
    expect(new Interface(AccountManager__factory.abi).parseTransaction({ data })?.args[0]).to.equal(stranger);
    expect((await operator(["payers"], environment())).out).not.to.contain(stranger);
  });

  it("name the chain that a transaction is for, and end at an endpoint of another one or none", async () => {
    const stranger = Wallet.createRandom().address;
    expect((await operator(["add-payer", stranger], environment())).out).to.contain("\n  chain 31337\n");
    const other = await operator(["add-payer", stranger], { ...environment(), CHAIN_ID: "8453" });
    expect([other.code, other.out, other.err]).to.deep.equal([
      2,
      "",
      "The first of RPC_URLS is on chain 31337, not 8453.\n",
    ]);
    const nowhere = { ...environment(), RPC_URLS: `http://127.0.0.1:${await freePort()}/v2/secret` };
    const dead = await operator(["payers"], nowhere);
    expect([dead.code, dead.out]).to.deep.equal([1, ""]);
    expect(dead.err)
      .to.match(/^The first of RPC_URLS does not answer: \S/)
      .and.not.contain("secret");
  });

  it("sign with the admin's key from the prompt, and with no other", async () => {
    const stranger = Wallet.createRandom().address;
    const wrong = await operator(
      ["add-payer", stranger, "--sign"],
      environment(),
      `${Wallet.createRandom().privateKey}\n`,
    );
    expect(wrong.code).to.equal(1);
    expect(wrong.err).to.contain("admin is");
    const added = await operator(["add-payer", stranger, "--sign"], environment(), `${DEVELOPMENT_DEPLOYER_KEY}\n`);
    expect(added.out, added.err).to.contain("done");
    expect(added.out + added.err).not.to.contain(DEVELOPMENT_DEPLOYER_KEY);
    const provider = new JsonRpcProvider(stack().rpcUrl, undefined, { staticNetwork: true });
    const contract = AccountManager__factory.connect(stack().contractAddress, provider);
    expect(await contract.apiPayers()).to.include(stranger);
    const removed = await operator(
      ["remove-payer", stranger, "--sign"],
      environment(),
      `${DEVELOPMENT_DEPLOYER_KEY}\n`,
    );
    expect(removed.out).to.contain("done");
    expect(await contract.apiPayers()).not.to.include(stranger);
    provider.destroy();
  });

  it("list an image, show its delay, and revoke it at once", async () => {
    const settings = {
      RPC_URLS: stack().rpcUrl,
      ALLOWLIST_ADDRESS: String(stack().deployment.allowlistAddress),
    };
    const image = "5a".repeat(32);
    const signed = (...args: string[]): Promise<Ended> =>
      operator([...args, "--sign"], settings, `${DEVELOPMENT_DEPLOYER_KEY}\n`);
    const printed = await operator(["allow-image", image], settings);
    expect(printed.out).to.contain(`to    ${settings.ALLOWLIST_ADDRESS}`);
    expect((await operator(["allowlist"], settings)).out).not.to.contain(image);
    expect((await signed("allow-image", image)).out).to.contain("done");
    expect((await signed("allow-device", "77".repeat(32))).out).to.contain("done");
    const { out } = await operator(["allowlist"], settings);
    expect(out).to.match(new RegExp(`image +0x${image} +counts since 20`));
    expect(out)
      .to.match(/device +any /)
      .and.to.contain("An addition waits for 0 seconds.");
    expect((await signed("revoke-image", image)).out).to.contain("done");
    expect((await signed("revoke-device", "77".repeat(32))).out).to.contain("done");
    expect((await operator(["allowlist"], settings)).out).not.to.contain(image);
    expect((await operator(["revoke-image", "5a"], settings)).code).to.equal(2);
    expect((await operator(["allowlist"], { RPC_URLS: stack().rpcUrl })).err).to.contain("ALLOWLIST_ADDRESS");
  });

  it("say whether all payers are registered, and name missing ones", async () => {
    expect((await operator(["register-payers", "2"], environment())).out).to.contain("All of them are registered");
    expect(
      (await operator(["register-payers", "50"], environment())).out.match(/addApiPayer\(/g)?.length,
    ).to.be.greaterThan(20);
  });

  it("explain invalid arguments", async () => {
    expect(await operator([], environment())).to.include({ code: 2 });
    expect((await operator(["add-payer", "somebody"], environment())).err).to.contain("takes an address");
    expect((await operator(["stuck"], environment())).err).to.contain("DATABASE_URL is not set");
    expect((await operator(["payers"], {})).err).to.contain("RPC_URLS is not set");
  });
});
