/**
 * A local node with the real contract, registered and funded payers, a store, and any number of relayers' chain parts
 * on it.
 */
import { expect } from "chai";
import { type HDNodeWallet, JsonRpcProvider, Wallet, keccak256, parseEther, randomBytes, toBeHex } from "ethers";
import { pino } from "pino";
import { freePort } from "../../scripts/dev/ports";
import {
  DEVELOPMENT_CHAIN_ID,
  DEVELOPMENT_DEPLOYER_KEY,
  startChain,
  type DevelopmentChain,
} from "../../scripts/dev/chain";
import { deployAccountManager } from "../../scripts/deployment";
import { ERC2771Forwarder__factory, type AccountManager } from "../../typechain-types";
import { FORWARD_TYPES, type ForwardRequest, type SignedForwardRequest } from "../../protocol/forwardShape";
import type { AccountId, Address } from "../../protocol/ids";
import type { ContractWrite, SimpleWrite } from "../../protocol/executor";
import { openChain, type ChainTuning } from "../../relayer/chain";
import type { Chain, ExecutorPort, SubmissionHooks, SubmissionOutcome, SubmitRequest } from "../../relayer/chain/types";
import type { Store } from "../../relayer/store/index";
import { Instance } from "../../relayer/store/instance";
import { TooLate } from "./inTime";
import { LocalExecutor } from "./localExecutor";
import { TEST_ROOT_COMMITMENT } from "./rootKey";
import { RpcProxy } from "./rpcProxy";
import { openTestStore } from "./testStore";

/** Polls often enough for tests; with long time-outs, for slow machines. */
export const TEST_TUNING: Partial<ChainTuning> = {
  rpcTimeoutMs: 5_000,
  rpcDeadlineMs: 20_000,
  answerWithinMs: 30_000,
  slowestPollMs: 100,
  lookEveryMs: 150,
  stuckAfterMs: 400,
  maintainEveryMs: 150,
  sweepEveryMs: 100,
};

/** For tests in which endpoints hang: short time-outs. */
export const IMPATIENT: Partial<ChainTuning> = { rpcTimeoutMs: 500, rpcDeadlineMs: 3_500, answerWithinMs: 10_000 };

export interface BedOptions {
  readonly payers?: number;
  readonly chainArgs?: readonly string[];
  readonly databaseUrl?: string;
}

export interface ChainInstanceOptions {
  readonly tuning?: Partial<ChainTuning>;
  readonly payerCount?: number;
  readonly confirmations?: number;
  /** Default: one proxy in front of the node. */
  readonly rpcUrls?: readonly string[];
  /** Default: the bed's. */
  readonly executor?: ExecutorPort;
  /** False: the lease is taken and never renewed, so that a test can let it expire. */
  readonly renewsLease?: boolean;
  /** Default: true. */
  readonly waitUntilReady?: boolean;
}

/** One relayer's chain part with its instance. */
export interface ChainInstance {
  readonly chain: Chain;
  readonly instance: Instance;
  close(): Promise<void>;
}

export class ChainBed {
  /** The outcomes reported to the ledger, in order. */
  readonly outcomes: SubmissionOutcome[] = [];
  readonly begun: string[] = [];
  readonly abandoned: string[] = [];
  readonly #relayers: ChainInstance[] = [];

  private constructor(
    readonly node: DevelopmentChain,
    readonly provider: JsonRpcProvider,
    readonly contract: AccountManager,
    readonly contractAddress: Address,
    readonly deploymentBlock: number,
    readonly store: Store,
    readonly executor: LocalExecutor,
    readonly proxy: RpcProxy,
    readonly payers: number,
  ) {}

  static async start({ payers = 2, chainArgs = [], databaseUrl }: BedOptions = {}): Promise<ChainBed> {
    const node = await startChain({ port: await freePort(), extraArgs: chainArgs });
    const provider = new JsonRpcProvider(node.rpcUrl, undefined, {
      staticNetwork: true,
      cacheTimeout: -1,
      pollingInterval: 20,
    });
    const deployer = new Wallet(DEVELOPMENT_DEPLOYER_KEY, provider);
    const { contract, deployment } = await deployAccountManager(deployer, "test", {
      admin: deployer.address,
      payerDelaySeconds: 0,
      rootCommitment: TEST_ROOT_COMMITMENT,
    });
    const contractAddress = deployment.contractAddress as Address;
    const executor = new LocalExecutor(DEVELOPMENT_CHAIN_ID, contractAddress, await contract.trustedForwarder());
    const store = await openTestStore({ databaseUrl });
    const proxy = await RpcProxy.start(node.rpcUrl);
    const bed = new ChainBed(
      node,
      provider,
      contract,
      contractAddress,
      deployment.blockNumber,
      store,
      executor,
      proxy,
      payers,
    );
    await bed.registerPayers(1, payers);
    await bed.setBalance(0, parseEther("1000"));
    return bed;
  }

  /** Registers payers `from` to `to` with the contract and gives each 100 ether. */
  async registerPayers(from: number, to: number): Promise<void> {
    for (let payer = from; payer <= to; payer++) {
      await (await this.contract.addApiPayer(this.executor.wallet(payer).address)).wait();
      await this.setBalance(payer, parseEther("100"));
    }
  }

  async setBalance(payer: number, wei: bigint): Promise<void> {
    await this.provider.send("anvil_setBalance", [this.executor.wallet(payer).address, toBeHex(wei)]);
  }

  readonly hooks: SubmissionHooks = {
    onBegin: async (ids) => void this.begun.push(...ids),
    onOutcome: async (outcomes) => void this.outcomes.push(...outcomes),
    onAbandon: async (id) => void this.abandoned.push(id),
  };

  async open({
    tuning,
    payerCount = this.payers,
    confirmations,
    rpcUrls = [this.proxy.url],
    waitUntilReady = true,
    executor = this.executor,
    renewsLease = true,
  }: ChainInstanceOptions = {}): Promise<ChainInstance> {
    const instance = new Instance({
      db: this.store.db,
      onError: () => undefined,
      renewalMs: renewsLease ? 5_000 : 2 ** 30,
    });
    await instance.start();
    const chain = await openChain({
      db: this.store.db,
      instanceId: instance.id,
      executor,
      hooks: this.hooks,
      log: pino({ level: process.env.TEST_LOG_LEVEL ?? "silent" }),
      rpcUrls,
      chainId: DEVELOPMENT_CHAIN_ID,
      contractAddress: this.contractAddress,
      deploymentBlock: this.deploymentBlock,
      payerCount,
      confirmationsBeforeAnswer: confirmations,
      tuning: { ...TEST_TUNING, ...tuning },
    });
    let closed = false;
    const relayer: ChainInstance = {
      chain,
      instance,
      async close() {
        if (closed) return;
        closed = true;
        await chain.close();
        await instance.stop();
      },
    };
    this.#relayers.push(relayer);
    if (waitUntilReady) await eventually("the chain is ready", async () => (await chain.ready()).ready);
    return relayer;
  }

  /** Simulates an instance that died more than 15 seconds ago. */
  async expire({ instance }: ChainInstance): Promise<void> {
    await this.store.db
      .updateTable("instances")
      .set({ renewed_at: new Date(Date.now() - 60_000) })
      .where("id", "=", instance.id)
      .execute();
  }

  async stop(): Promise<void> {
    for (const relayer of this.#relayers) await relayer.close();
    await this.proxy.stop();
    await this.store.close();
    this.provider.destroy();
    await this.node.process.stop();
  }

  /** Mines blocks without new transactions. */
  async mine(blocks = 1): Promise<void> {
    await this.provider.send("anvil_mine", [toBeHex(blocks)]);
  }

  /** Waits until the event follower has read the newest block. */
  async followed(): Promise<void> {
    await eventually("the follower is at the head", async () => {
      const head = await this.provider.getBlock("latest");
      const at = await this.store.db
        .selectFrom("followed_blocks")
        .selectAll()
        .orderBy("number", "desc")
        .limit(1)
        .executeTakeFirst();
      return at?.hash === head?.hash;
    });
  }

  /** Replaces the newest blocks by empty ones. */
  async reorg(depth = 1): Promise<void> {
    await this.followed();
    await this.provider.send("anvil_reorg", [depth, []]);
    await this.mine();
  }

  /** The nonce that the store gives to the payer's next transaction. */
  async nextNonce(payer = 1): Promise<number> {
    const lane = await this.store.db
      .selectFrom("lanes")
      .select("next_nonce")
      .where("payer", "=", payer)
      .executeTakeFirstOrThrow();
    return lane.next_nonce;
  }

  /** Each write was reported to the ledger once. */
  expectToldOnce(): void {
    const told = this.outcomes.map(({ submissionId }) => submissionId);
    expect(new Set(told).size, "the ledger is told of each write once").to.equal(told.length);
  }

  /** How many groups the account has, straight from the node. */
  async groupCount(account: AccountId): Promise<number> {
    return Number((await this.contract.getAccount(account)).groupCount);
  }
}

export const freshAccountId = (): AccountId => keccak256(randomBytes(32)) as AccountId;

/** Requests as the routes make them. The local executor does not check credentials. */
const credential = { type: "key", key: "-" } as const;

export const request = (
  accountId: AccountId,
  kind: string,
  write: ContractWrite,
  more: Partial<SubmitRequest> = {},
): SubmitRequest => ({
  accountId,
  credential,
  kind,
  write,
  ...more,
});

export const newAccount = (id: AccountId, more: Partial<SubmitRequest> = {}): SubmitRequest =>
  request(
    id,
    "new_account",
    { functionName: "newAccount", args: [id, true, "test", "", Wallet.createRandom().address] },
    more,
  );

export const addGroup = (id: AccountId, name = "group", more: Partial<SubmitRequest> = {}): SubmitRequest =>
  request(id, "add_group", { functionName: "addGroup", args: [id, name, "", [], []] }, more);

/** A forward request that is signed when it is next in its account's queue, with the owner's nonce at that time. */
export function forwarded(
  bed: ChainBed,
  owner: HDNodeWallet | Wallet,
  accountId: AccountId,
  write: SimpleWrite,
  more: Partial<SubmitRequest> = {},
): SubmitRequest {
  const forward = (): Promise<SignedForwardRequest> => signForward(bed, owner, write);
  return { accountId, kind: "relay", signer: owner.address as Address, forward, ...more };
}

export async function signForward(
  { contract, contractAddress, provider }: ChainBed,
  owner: HDNodeWallet | Wallet,
  { functionName, args }: SimpleWrite,
  overrides: Partial<ForwardRequest> = {},
): Promise<SignedForwardRequest> {
  const forwarder = ERC2771Forwarder__factory.connect(await contract.trustedForwarder(), provider);
  const { name, version, chainId, verifyingContract } = await forwarder.eip712Domain();
  const request: ForwardRequest = {
    from: owner.address as Address,
    to: contractAddress,
    value: "0",
    gas: "400000",
    nonce: String(await forwarder.nonces(owner.address)),
    deadline: String(Math.floor(Date.now() / 1000) + 3_600),
    data: contract.interface.encodeFunctionData(functionName as "addGroup", args as never),
    ...overrides,
  };
  return {
    ...request,
    signature: await owner.signTypedData({ name, version, chainId, verifyingContract }, FORWARD_TYPES, request),
  };
}

/** Polls `probe` until it holds; fails with `what` after `timeoutMs`. */
export async function eventually(
  what: string,
  probe: () => Promise<boolean> | boolean,
  timeoutMs = 10_000,
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await probe())) {
    if (Date.now() > deadline) throw new TooLate(`not within ${timeoutMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
