/**
 * The example's agents on two machines try to exceed the allowance: all at once, while a keyholder is killed, and with
 * a relayer that repeats, withholds and lies. All that was signed is counted, also what nobody sent.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { Contract, encodeBytes32String, verifyTypedData, Wallet } from "ethers";
import { BUDGETS, budgetsAddressOf } from "../../protocol/budgets";
import type { ExecutorAnswer } from "../../protocol/executor";
import { WINDOWS } from "../../protocol/budgetTerms";
import { actionHashOf, type Address, type Cid } from "../../protocol/ids";
import { ExecutorClient } from "../../relayer/executor/client";
import { AccountManager__factory } from "../../typechain-types";
import { DEVELOPMENT_DEPLOYER_KEY } from "../../scripts/dev/chain";
import { callExecutor } from "../../scripts/dev/payers";
import { startPostgres, type TestPostgres } from "../../scripts/dev/postgres";
import { startStack, type Stack } from "../../scripts/dev/stack";
import { programFolder, surroundings } from "../support/bash";
import { connect } from "../support/chain";
import { Machine } from "../support/machines";

const ROOT = join(__dirname, "..", "..");
const LIMIT = 1_000_000n;
const PRICE = 100_000n;
const PACKAGES = ["ethers", "@modelcontextprotocol/sdk", "solc", "@openzeppelin/contracts"];
const TYPES = {
  TransferWithAuthorization: [
    ["from", "address"],
    ["to", "address"],
    ["value", "uint256"],
    ["validAfter", "uint256"],
    ["validBefore", "uint256"],
    ["nonce", "bytes32"],
  ].map(([name = "", type = ""]) => ({ name, type })),
};

interface Payment {
  readonly authorization: Record<"from" | "to" | "value" | "validAfter" | "validBefore" | "nonce", string>;
  readonly signature: string;
}
interface Shop {
  readonly url: string;
  readonly asset: string;
  readonly payTo: string;
  readonly chainId: string;
  readonly name: string;
  readonly version: string;
}
interface Allowance {
  readonly usage_api_key: string;
  readonly pkp: string;
  readonly cid: string;
  readonly account: string;
}
type Lease = ExecutorAnswer<"nextLeases">["leases"][number];

describe("an agent with an allowance", function () {
  this.timeout(180_000);
  let folder: string;
  let postgres: TestPostgres;
  let stack: Stack;
  let second: Machine;
  let shopProcess: ChildProcess;
  let shop: Shop;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "allowance-"));
    cpSync(join(ROOT, "examples", "agent-with-allowance"), folder, { recursive: true });
    for (const name of PACKAGES) {
      mkdirSync(join(folder, "node_modules", name, ".."), { recursive: true });
      symlinkSync(join(ROOT, "node_modules", name), join(folder, "node_modules", name));
    }
    cpSync(join(ROOT, "dist", "sdk"), join(folder, "node_modules", "keywright"), { recursive: true });
    postgres = await startPostgres();
    const databaseUrl = await postgres.database("allowance");
    stack = await startStack({ env: { DATABASE_URL: databaseUrl } });
    second = await Machine.start("second", { stack, databaseUrl, env: { POOL_SIZE: "2" } });
    shopProcess = program("shop.mjs");
    for (let tries = 0; !existsSync(join(folder, "shop.json")) && tries < 600; tries++) await sleep(100);
    shop = JSON.parse(readFileSync(join(folder, "shop.json"), "utf8")) as Shop;
  });
  after(async () => {
    shopProcess?.kill();
    await second?.stop();
    await stack?.stop();
    await postgres?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  function program(file: string, more: Record<string, string> = {}): ChildProcess {
    const known = { KEYWRIGHT_URL: stack.baseUrl, RPC_URL: stack.rpcUrl, LIMIT: String(LIMIT), ...more };
    const env = surroundings(programFolder(folder), known);
    return spawn(process.execPath, [file], { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"] });
  }
  async function output(child: ChildProcess): Promise<string> {
    let text = "";
    child.stdout?.on("data", (chunk: Buffer) => (text += chunk.toString()));
    await once(child, "close");
    return text;
  }
  const allowance = async (): Promise<Allowance> => JSON.parse(await output(program("owner.mjs"))) as Allowance;
  const agent = ({ usage_api_key: key, pkp }: Allowance, url: string, pages: number): Promise<string> =>
    output(
      program("agent.mjs", {
        KEYWRIGHT_URL: url,
        KEYWRIGHT_API_KEY: key,
        PKP: pkp,
        PAGES: String(pages),
        PAYMENTS: `payments-${pkp}.jsonl`,
      }),
    );

  const domain = () => {
    const { name, version, chainId, asset: verifyingContract } = shop;
    return { name, version, chainId, verifyingContract };
  };
  /** The sum of everything that the PKP has signed, each authorization once, as the token would take it. */
  function signedSum({ pkp }: Allowance, more: readonly Payment[] = []): bigint {
    const file = join(folder, `payments-${pkp}.jsonl`);
    const lines = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
    const payments = [...lines.map((line) => JSON.parse(line) as Payment), ...more];
    for (const { authorization, signature } of payments)
      expect(verifyTypedData(domain(), TYPES, authorization, signature)).to.equal(pkp);
    const values = new Map(payments.map(({ authorization: { nonce, value } }) => [nonce, BigInt(value)]));
    return [...values.values()].reduce((sum, value) => sum + value, 0n);
  }
  /** A refused page is dearer than what the chain has left: the counter may stop before the limit, by less than one. */
  function expectUsedUp(used: bigint): void {
    expect(Number(used)).to.be.within(Number(LIMIT - PRICE + 1n), Number(LIMIT));
  }
  async function onChain({ pkp, account, cid }: Allowance): Promise<{ used: bigint; paid: bigint }> {
    const provider = connect(stack.rpcUrl);
    try {
      const budgets = new Contract(budgetsAddressOf(stack.contractAddress as Address), BUDGETS, provider);
      const counter = [account, actionHashOf(cid as Cid), encodeBytes32String("usd-daily"), WINDOWS.indexOf("day")];
      const [used] = (await budgets.getFunction("usedNow")(...counter)) as [bigint];
      const token = new Contract(shop.asset, ["function balanceOf(address) view returns (uint256)"], provider);
      return { used, paid: 5_000_000n - ((await token.getFunction("balanceOf")(pkp)) as bigint) };
    } finally {
      provider.destroy();
    }
  }

  it("is spent to the last unit and no further by agents on two machines at once", async () => {
    const given = await allowance();
    const both = [stack.baseUrl, second.baseUrl].map((url) => agent(given, url, 12));
    for (const text of await Promise.all(both)) expect(text).to.match(/refused: budget_exceeded/);
    const { used, paid } = await onChain(given);
    const signed = signedSum(given);
    expectUsedUp(used);
    expect(paid).to.equal(signed);
    // Each machine may be left with a part of a slice that pays for no page.
    expect(Number(signed)).to.be.within(Number(LIMIT - 2n * PRICE), Number(LIMIT));
  });

  it("is not exceeded when a keyholder is killed in the middle and starts again", async () => {
    const given = await allowance();
    const agents = [stack.baseUrl, second.baseUrl].map((url) => agent(given, url, 8));
    for (let tries = 0; signedSum(given) < 2n * PRICE && tries < 300; tries++) await sleep(50);
    await stack.restart("executor", "SIGKILL");
    await Promise.all(agents);
    await Promise.all([stack.baseUrl, second.baseUrl].map((url) => agent(given, url, 12)));
    const { used, paid } = await onChain(given);
    expectUsedUp(used);
    expect(Number(signedSum(given))).to.be.within(Number(LIMIT / 2n), Number(LIMIT));
    expect(paid <= LIMIT).to.equal(true);
  });

  it("is not exceeded with the help of a relayer that repeats, withholds and lies", async () => {
    const given = await allowance();
    const socket = join(stack.dataDir, "machine-second", "executor.sock");
    const evil = await EvilRelayer.take(second, { stack, socket, shop, given });
    try {
      const honest = agent(given, stack.baseUrl, 6);
      const stolen = await evil.spend(12);
      await honest;
      stolen.push(...(await evil.spend(6)));
      const { used, paid } = await onChain(given);
      expect(Number(signedSum(given, stolen))).to.be.within(Number(PRICE), Number(LIMIT));
      expect([used <= LIMIT, paid <= LIMIT]).to.deep.equal([true, true]);
      expect(new Set(evil.done)).to.deep.equal(new Set(["withheld", "sent twice", "sent, said to fail"]));
    } finally {
      await evil.stop();
    }
  });
});

/** Has a keyholder for itself, with the agent's key from its requests and a payer of its own. */
class EvilRelayer {
  readonly done: string[] = [];
  readonly #client: ExecutorClient;
  readonly #stopped = new AbortController();
  readonly #leases: Promise<void>;
  #nonce = 0;

  private constructor(readonly parts: EvilParts) {
    this.#client = new ExecutorClient(parts.socket);
    this.#leases = this.#steal().catch(() => undefined);
  }

  /** The machine's own relayer makes room. */
  static async take(machine: Machine, parts: EvilParts): Promise<EvilRelayer> {
    await machine.stopRelayer();
    const { stack, socket } = parts;
    const { payers } = await callExecutor(socket, "payers", { count: PAYER });
    const payer = payers[PAYER - 1] as string;
    const provider = connect(stack.rpcUrl);
    try {
      await provider.send("anvil_setBalance", [payer, "0x56bc75e2d63100000"]);
      const contract = AccountManager__factory.connect(
        stack.contractAddress,
        new Wallet(DEVELOPMENT_DEPLOYER_KEY, provider),
      );
      await (await contract.addApiPayer(payer)).wait();
    } finally {
      provider.destroy();
    }
    return new EvilRelayer(parts);
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#client.close();
    await this.#leases;
  }

  /** Runs the policy without asking anybody for credit, each run twice. */
  async spend(times: number): Promise<Payment[]> {
    const signed: Payment[] = [];
    await Promise.all(
      Array.from({ length: times }, async (_, at) => {
        const authorization = this.#authorization();
        for (let repeat = 0; repeat < 2; repeat++) {
          const signature = await this.#run(authorization).catch(() => undefined);
          if (signature !== undefined) signed.push({ authorization, signature });
          if (at % 2 === 0) break;
        }
      }),
    );
    return signed;
  }

  #authorization(): Payment["authorization"] {
    const { shop, given } = this.parts;
    const times = { validAfter: "0", validBefore: String(Math.floor(Date.now() / 1000) + 600) };
    const nonce = `0x${randomBytes(32).toString("hex")}`;
    return { from: given.pkp, to: shop.payTo, value: String(PRICE), ...times, nonce };
  }

  async #run(message: Payment["authorization"]): Promise<string | undefined> {
    const { shop, given } = this.parts;
    const { name, version, chainId, asset: verifyingContract } = shop;
    const primaryType = "TransferWithAuthorization";
    const domain = { name, version, chainId, verifyingContract };
    const params = JSON.stringify({ pkpId: given.pkp, domain, types: TYPES, primaryType, message });
    const credential = { type: "key", key: given.usage_api_key } as const;
    const asked = this.#client.askRun({ credential, cid: given.cid, params, notBefore: Promise.resolve(0) });
    await asked.permission;
    const { response, error } = await asked.start(30_000);
    return error === undefined ? (JSON.parse(response) as string) : undefined;
  }

  async #steal(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      const { leases } = await this.#client.call("nextLeases", {}, { signal: this.#stopped.signal });
      for (const lease of leases) await this.#betray(lease);
    }
  }

  async #betray(lease: Lease): Promise<void> {
    const how = (["sent twice", "withheld", "sent, said to fail"] as const)[this.done.length % 3];
    this.done.push(how ?? "");
    if (how !== "withheld") await this.#send(lease);
    if (how === "sent twice") await this.#send(lease);
    const failed = { code: "chain_unavailable", detail: "so it says" };
    await this.#client.call("leaseOutcome", { id: lease.id, ...(how === "sent twice" ? {} : { failed }) });
  }

  /** In a transaction of its own, of the payer that only this relayer uses. */
  async #send({ id, accountId, actionHash, name, window, amount, limit }: Lease): Promise<void> {
    const index = String(WINDOWS.indexOf(window));
    const args = [accountId, actionHash, encodeBytes32String(name), index, amount, limit, id];
    const asked = [{ credential: { type: "lease" as const, id }, write: { functionName: "lease", args } }];
    const { writes } = await this.#client.call("authorizeWrites", { writes: asked });
    const [call] = writes;
    if (call === undefined || "refused" in call) throw new Error("a lease of its own asking was refused");
    const fees = { maxFeePerGas: "20000000000", maxPriorityFeePerGas: "1000000000", gasLimit: "200000" };
    const offer = { ...fees, payer: PAYER, calls: [call], nonce: this.#nonce++ };
    const { rawTransaction } = await this.#client.call("signAsPayer", offer);
    const provider = connect(this.parts.stack.rpcUrl);
    await provider.broadcastTransaction(rawTransaction).finally(() => provider.destroy());
  }
}

const PAYER = 40;
interface EvilParts {
  readonly stack: Stack;
  readonly socket: string;
  readonly shop: Shop;
  readonly given: Allowance;
}
