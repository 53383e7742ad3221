/** A real executor process over a real chain with the real contract, for tests of the keyholder from outside. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { JsonRpcProvider, Wallet, type ContractTransactionResponse } from "ethers";
import { Agent, request } from "undici";
import { actionHashOf, parseAddress, type AccountId, type Address } from "../../protocol/ids";
import { cidOfCode } from "../../protocol/cid";
import {
  EXECUTOR_CALLS,
  type ExecutorAnswer,
  type ExecutorCall,
  type ExecutorRequest,
  type WriteArgument,
} from "../../protocol/executor";
import { DEVELOPMENT_DEPLOYER_KEY, startChain, type DevelopmentChain } from "../../scripts/dev/chain";
import { ensureDeployment } from "../../scripts/dev/localDeployment";
import { freePort } from "../../scripts/dev/ports";
import { startProcess, waitUntil, type ManagedProcess } from "../../scripts/dev/processes";
import { AccountManager__factory, type AccountManager } from "../../typechain-types";
import { TEST_ROOT_COMMITMENT, writeTestRoot } from "./rootKey";
import { defined } from "../../protocol/defined";

export const PAYERS = 2;
const RUN_LIMIT_MS = 10_000;

export interface Refusal {
  code: string;
  detail: string;
  facts?: Record<string, unknown>;
}

/** The executor's answer or refusal. */
export type Outcome<C extends ExecutorCall> = { status: number; answer?: ExecutorAnswer<C>; refusal?: Refusal };

/** A chain with the contract on it, and wallets that can pay on it. */
export class TestChain {
  readonly #chain: DevelopmentChain;
  readonly #folder: string;

  private constructor(
    chain: DevelopmentChain,
    readonly provider: JsonRpcProvider,
    readonly contract: AccountManager,
    readonly contractAddress: string,
    folder: string,
  ) {
    this.#chain = chain;
    this.#folder = folder;
  }

  static async start(extraArgs: string[] = []): Promise<TestChain> {
    const folder = mkdtempSync(join(tmpdir(), "keywright-chain-"));
    const chain = await startChain({ port: await freePort(), extraArgs });
    const { contractAddress } = await ensureDeployment(
      chain.rpcUrl,
      join(folder, "deployment.json"),
      async () => TEST_ROOT_COMMITMENT,
    ).catch(async (error: unknown) => {
      await chain.process.stop();
      throw error;
    });
    const provider = new JsonRpcProvider(chain.rpcUrl, undefined, {
      staticNetwork: true,
      cacheTimeout: -1,
      pollingInterval: 20,
    });
    const admin = new Wallet(DEVELOPMENT_DEPLOYER_KEY, provider);
    return new TestChain(
      chain,
      provider,
      AccountManager__factory.connect(contractAddress, admin),
      contractAddress,
      folder,
    );
  }

  get rpcUrl(): string {
    return this.#chain.rpcUrl;
  }

  /** A wallet with gas. */
  async wallet(): Promise<Wallet> {
    const wallet = Wallet.createRandom().connect(this.provider);
    await this.provider.send("hardhat_setBalance", [wallet.address, "0x56bc75e2d63100000"]);
    return new Wallet(wallet.privateKey, this.provider);
  }

  /** Makes `payer` an API payer with gas. */
  async register(payer: string): Promise<void> {
    await (await this.contract.addApiPayer(payer)).wait();
    await this.provider.send("hardhat_setBalance", [payer, "0x56bc75e2d63100000"]);
  }

  async stop(): Promise<void> {
    this.provider.destroy();
    await this.#chain.process.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

const PROGRAM = join(__dirname, "../../dist/executor/main.js");

export class TestExecutor {
  readonly logs: string[] = [];
  readonly socketPath: string;
  readonly #agent: Agent;
  #process: ManagedProcess | undefined;
  readonly #env: Record<string, string>;
  readonly #program: string;

  private constructor(
    readonly folder: string,
    env: Record<string, string>,
    program: string,
  ) {
    this.#env = env;
    this.#program = program;
    this.socketPath = join(folder, "executor.sock");
    this.#agent = new Agent({ connect: { socketPath: this.socketPath }, connections: 64 });
  }

  static async start(
    chain: Pick<TestChain, "rpcUrl" | "contractAddress">,
    env: Record<string, string> = {},
    program = PROGRAM,
  ): Promise<TestExecutor> {
    const folder = mkdtempSync(join(tmpdir(), "keywright-executor-test-"));
    const executor = new TestExecutor(
      folder,
      {
        LOG_LEVEL: "debug",
        PATH: process.env.PATH ?? "",
        RPC_URLS: chain.rpcUrl,
        CHAIN_ID: "31337",
        CONTRACT_ADDRESS: chain.contractAddress,
        DATA_DIR: join(folder, "data"),
        POOL_SIZE: "2",
        ...env,
      },
      program,
    );
    await executor.launch().catch(async (error: unknown) => {
      await executor.stop();
      throw error;
    });
    return executor;
  }

  async launch(): Promise<void> {
    writeTestRoot(this.#env.ROOT_KEY_FILE ?? join(this.#env.DATA_DIR ?? "", "root.key"));
    const env = { ...this.#env, EXECUTOR_SOCKET: this.socketPath };
    this.#process = startProcess({
      name: "executor",
      command: process.execPath,
      args: [this.#program],
      env,
      onLine: (line) => this.logs.push(line),
    });
    const ready = async (): Promise<boolean> => (await this.call("ready", {})).ready;
    await waitUntil("the executor", ready, { timeoutMs: 30_000, died: this.#process.died });
  }

  get process(): ManagedProcess {
    if (this.#process === undefined) throw new Error("the executor is not running");
    return this.#process;
  }

  /** The answer; throws on a refusal. */
  async call<C extends ExecutorCall>(name: C, body: ExecutorRequest<C>): Promise<ExecutorAnswer<C>> {
    const { answer, refusal, status } = await this.ask(name, body);
    if (answer === undefined) throw new Error(`${name}: ${status} ${JSON.stringify(refusal)}`);
    return answer;
  }

  /** The code of the refusal, "allowed" when there was none. */
  async codeOf<C extends ExecutorCall>(name: C, body: ExecutorRequest<C>): Promise<string> {
    return (await this.ask(name, body)).refusal?.code ?? "allowed";
  }

  async ask<C extends ExecutorCall>(name: C, body: unknown, signal?: AbortSignal): Promise<Outcome<C>> {
    const { statusCode, body: answer } = await request(`http://executor${EXECUTOR_CALLS[name].path}`, {
      method: "POST",
      dispatcher: this.#agent,
      headers: { "content-type": "application/json" },
      body: typeof body === "string" ? body : JSON.stringify(body),
      ...defined({ signal }),
    });
    const value: unknown = await answer.json();
    if (statusCode === 200)
      return { status: 200, answer: EXECUTOR_CALLS[name].answer.parse(value) as ExecutorAnswer<C> };
    return { status: statusCode, refusal: value as Refusal };
  }

  run(key: string, code: string, params: object = {}, pkpId?: string): Promise<Outcome<"run">> {
    return this.ask("run", {
      credential: { type: "key", key },
      code,
      params: JSON.stringify(params),
      limitMs: RUN_LIMIT_MS,
      ...defined({ pkpId }),
    });
  }

  async stop(): Promise<void> {
    await this.#agent.destroy();
    await this.#process?.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A managed account made through the executor's own signatures, as the relayer does. */
export class TestAccount {
  nonce = 0;
  readonly #chain: TestChain;
  readonly #executor: TestExecutor;

  private constructor(
    chain: TestChain,
    executor: TestExecutor,
    readonly key: string,
    readonly id: AccountId,
    readonly owner: Address,
  ) {
    this.#chain = chain;
    this.#executor = executor;
  }

  static async create(chain: TestChain, executor: TestExecutor): Promise<TestAccount> {
    const { apiKey, apiKeyHash, walletAddress } = await executor.call("mintAccountKey", {});
    const account = new TestAccount(chain, executor, apiKey, apiKeyHash as AccountId, walletAddress as Address);
    await account.write("newAccount", [apiKeyHash, true, "an account", "of a test", walletAddress]);
    return account;
  }

  /** A write of this account through payer 1: authorised, signed, sent, mined. */
  async write(functionName: string, args: WriteArgument[], key = this.key): Promise<void> {
    const credential = { type: "key", key } as const;
    const { writes } = await this.#executor.call("authorizeWrites", {
      writes: [{ credential, write: { functionName, args } }],
    });
    const authorized = writes[0];
    if (authorized === undefined || "refused" in authorized)
      throw new Error(`the executor refused: ${JSON.stringify(authorized)}`);
    await sendAsPayer(this.#chain, this.#executor, authorized.calldata, authorized.tag);
  }

  async mintPkp(): Promise<Address> {
    const { walletAddress, derivationPath } = await this.#executor.call("mintPkp", { accountId: this.id });
    await this.write("registerWalletDerivation", [this.id, walletAddress, derivationPath, "", ""]);
    return parseAddress(walletAddress) as Address;
  }

  /** A group of these actions (code or "any") and PKPs; ids count from 1. */
  async addGroup(codes: readonly string[], pkps: readonly string[]): Promise<void> {
    const actions = await Promise.all(
      codes.map(async (code) => (code === "any" ? "0" : actionHashOf(await cidOfCode(code)))),
    );
    await this.write("addGroup", [this.id, "a group", "", actions, [...pkps]]);
  }

  /** A usage key that may execute in these groups. */
  async addUsageKey(
    executeInGroups: readonly number[],
    expiration = 0,
    capCents = 0,
  ): Promise<{ key: string; id: string }> {
    const { usageApiKey, apiKeyHash } = await this.#executor.call("mintApiUsageKey", {});
    await this.setUsageKey(apiKeyHash, executeInGroups, expiration, capCents);
    return { key: usageApiKey, id: apiKeyHash };
  }

  async setUsageKey(keyId: string, executeInGroups: readonly number[], expiration = 0, capCents = 0): Promise<void> {
    const scopes = [false, false, false, [], [], [], executeInGroups.map(String)];
    await this.write("setUsageApiKey", [this.id, keyId, String(expiration), String(capCents), "a key", "", ...scopes]);
  }
}

export async function sendAsPayer(
  chain: TestChain,
  executor: TestExecutor,
  calldata: string,
  tag: string,
  payer = 1,
): Promise<void> {
  const { payers } = await executor.call("payers", { count: PAYERS });
  const nonce = await chain.provider.getTransactionCount(payers[payer - 1] ?? "");
  const { rawTransaction } = await executor.call("signAsPayer", {
    payer,
    calls: [{ calldata, tag }],
    nonce,
    gasLimit: "3000000",
    maxFeePerGas: "10000000000",
    maxPriorityFeePerGas: "1000000000",
  });
  const receipt = await (await chain.provider.broadcastTransaction(rawTransaction)).wait();
  if (receipt?.status !== 1) throw new Error("the write reverted");
}

/** Registers the executor's payers on the contract. */
export async function registerPayers(chain: TestChain, executor: TestExecutor): Promise<void> {
  const { payers } = await executor.call("payers", { count: PAYERS });
  for (const payer of payers) await chain.register(payer);
}

export async function mined(sent: Promise<ContractTransactionResponse>): Promise<void> {
  await (await sent).wait();
}
