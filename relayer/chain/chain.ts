/** Assembles the chain module. */
import { EventEmitter } from "node:events";
import { PeriodicTask } from "../periodicTask";
import { KeywrightError } from "../../protocol/errors";
import type { AccountId, ActionHash, Address, PkpId } from "../../protocol/ids";
import type { ContractWrite } from "../../protocol/executor";
import type { ExportRow } from "../../protocol/exports";
import { encodeWrite } from "./abi/contract";
import { TransactionMonitor, type SendingParts } from "./submissions/transactionMonitor";
import { Leases } from "./leases";
import { Events } from "./events/events";
import { Members } from "./events/members";
import { FeeOracle } from "./payers/fees";
import { Follower } from "./events/follower";
import { ChainLogs } from "./events/logSource";
import { Head } from "./rpc/head";
import { PayerMaintenance } from "./payers/maintenance";
import { Lanes } from "./payers/lanes";
import { LastWrites } from "./reads/lastWrites";
import { networkFacts, networkTuning } from "./network";
import { wantPayers } from "./payers/wanted";
import { Reads } from "./reads/reads";
import type { OutcomeFeed } from "./submissions/parts";
import { RpcClient, type EndpointHead } from "./rpc/client";
import { CHAIN_TUNING, type ChainOptions, type ChainTuning } from "./settings";
import { exportWrites } from "./reads/exportWrites";
import { viewOf } from "./reads/submissionView";
import { Batcher } from "./submissions/batcher";
import { sendWaiting, takeOver } from "./submissions/recovery";
import { Simulation } from "./submissions/simulation";
import { Submitter } from "./submissions/submitter";
import { Transactions } from "./submissions/transactions";
import { AccountQueue } from "./submissions/accountQueue";
import type {
  Chain,
  ChainStats,
  EventOrder,
  EventPage,
  GroupMembers,
  NetworkFacts,
  OwnedAccount,
  Registration,
  Readiness,
  SubmissionId,
  SubmissionView,
  SubmitAnswer,
  SubmitRequest,
} from "./types";
import { within } from "../../protocol/within";

const OTHER_CHAIN =
  "Every RPC endpoint that answers is on another chain, or its chain has dropped blocks that were final: nothing is " +
  "followed or sent until one is on this service's chain, or an operator rewinds (docs/operations.md).";
/** Seconds without any response from the chain after which `/ready` reports it. */
const SILENT_SECONDS = 15;
/** Maximum wait of an ownership query for the events of an answered write. */
const FOLLOWED_WITHIN_MS = 5_000;
/** Upper bound of the gas of most writes, margin included. */
const USUAL_WRITE_GAS = 300_000n;
/** Maximum wait of `/ready` for the gas price. */
const PRICE_WITHIN_MS = 1_000;

/**
 * Starts the chain module. Neither chain nor executor need be up: work that depends on them continues once they are.
 */
export async function openChain(options: ChainOptions): Promise<Chain> {
  const chain = new ChainModule(options, { ...CHAIN_TUNING, ...networkTuning(options.chainId), ...options.tuning });
  await chain.start();
  return chain;
}

const rpcClientOf = ({ rpcUrls, chainId, onExchange, connect }: ChainOptions, tuning: ChainTuning): RpcClient =>
  new RpcClient({
    urls: rpcUrls,
    chainId,
    timeoutMs: tuning.rpcTimeoutMs,
    deadlineMs: tuning.rpcDeadlineMs,
    stillForMs: tuning.stillForMs,
    onExchange,
    connect,
  });

const followerOf = (
  { db, contractAddress, deploymentBlock = 0, log }: ChainOptions,
  { finalityDepth }: ChainTuning,
  rpc: RpcClient,
  onReorg: () => void,
): Follower => new Follower({ db, rpc, contractAddress, deploymentBlock, finalityDepth, log, onReorg });

class ChainModule extends Reads implements Chain {
  readonly network: NetworkFacts;
  readonly logs: ChainLogs;
  readonly #rpc: RpcClient;
  readonly #head: Head;
  readonly #lanes: Lanes;
  readonly #fees: FeeOracle;
  readonly #queue: AccountQueue;
  readonly #transactions: Transactions;
  readonly #simulation: Simulation;
  readonly #monitor: TransactionMonitor;
  readonly #sending: SendingParts;
  readonly #submitter: Submitter;
  readonly #leases: Leases;
  readonly #maintenance: PayerMaintenance;
  readonly #follower: Follower;
  readonly #lastWrite: () => Promise<number>;
  readonly #events: Events;
  /** Shared by all requests that wait for the newest events. */
  #following: Promise<void> | undefined;
  readonly #members: Members;
  readonly #work: readonly PeriodicTask[];
  readonly #given: ChainOptions;

  constructor(given: ChainOptions, tuning: ChainTuning) {
    const { db, instanceId, executor, hooks, log, contractAddress, confirmationsBeforeAnswer = 1 } = given;
    const rpc = rpcClientOf(given, tuning);
    const lastWrites = new LastWrites(db, given.storeIsOurs === true);
    const minBlock = (): Promise<number> => lastWrites.block();
    super({ rpc, contractAddress, minBlock });
    this.#given = given;
    this.#lastWrite = minBlock;
    this.network = networkFacts(given.chainId, contractAddress);
    this.#rpc = rpc;
    this.logs = new ChainLogs(rpc, contractAddress);
    this.#head = new Head({ rpc, log, fastestPollMs: tuning.fastestPollMs, slowestPollMs: tuning.slowestPollMs });
    this.#lanes = new Lanes({ db, maxInFlight: tuning.maxInFlightPerLane });
    this.#queue = new AccountQueue(db, tuning);
    this.#transactions = new Transactions(db, instanceId, hooks);
    const outcomes: OutcomeFeed = new EventEmitter();
    outcomes.on("transaction", ({ transaction: { payer, block_number: block } }) => {
      lastWrites.note(block ?? 0);
      this.#lanes.end(payer);
    });
    const fees = (this.#fees = new FeeOracle({
      rpc,
      capWei: tuning.maxFeeCapWei,
      defaultTipWei: tuning.defaultTipWei,
    }));
    const forwarder = (): Promise<Address> => this.forwarder();
    this.#simulation = new Simulation({ rpc, contractAddress, forwarder, minBlock });
    const parts = {
      ...{ rpc, contractAddress, executor, hooks, fees, outcomes, log, tuning },
      head: this.#head,
      lanes: this.#lanes,
      queue: this.#queue,
      simulation: this.#simulation,
      transactions: this.#transactions,
    };
    this.#monitor = new TransactionMonitor(parts);
    const sending = (this.#sending = { ...parts, monitor: this.#monitor });
    this.#submitter = new Submitter({ ...parts, batcher: new Batcher(sending), confirmationsBeforeAnswer });
    this.#leases = new Leases(db, instanceId);
    this.#maintenance = new PayerMaintenance({ ...sending, db, apiPayers: () => this.apiPayers() });
    this.#follower = followerOf(given, tuning, rpc, () => lastWrites.forget());
    this.#events = new Events(db);
    this.#members = new Members(db);
    this.#work = this.#backgroundWork(tuning);
  }

  #backgroundWork(tuning: ChainTuning): PeriodicTask[] {
    return [
      this.#periodicTask("maintain the lanes", tuning.maintainEveryMs, () =>
        this.#underLease("keep_lanes", () => this.#maintenance.run()),
      ),
      this.#periodicTask("take up transactions", tuning.sweepEveryMs, () => takeOver(this.#sending)),
      this.#periodicTask("send waiting writes", tuning.sweepEveryMs, () => sendWaiting(this.#sending)),
      this.#periodicTask("follow events", tuning.slowestPollMs, () =>
        this.#underLease("follow_events", () => this.#follower.follow()),
      ),
      // Apart from the follower, which may be another relayer, or wait for an endpoint until an operator rewinds.
      this.#periodicTask("know the newest final block", tuning.sweepEveryMs, () => this.#knowFinalBlock()),
    ];
  }

  #periodicTask(name: string, everyMs: number, work: () => Promise<void>): PeriodicTask {
    return new PeriodicTask(work, everyMs, (error) =>
      this.#given.log.warn({ err: error, work: name }, "background work failed; it is tried again"),
    );
  }

  async start(): Promise<void> {
    await wantPayers(this.#given.db, this.#given.payerCount);
    await this.#knowFinalBlock();
    this.#head.start();
    for (const work of this.#work) work.start();
  }

  async #knowFinalBlock(): Promise<void> {
    this.#rpc.know(await this.#follower.finalBlock());
  }

  async simulate(write: ContractWrite): Promise<void> {
    const payer = await this.#lanes.anyRegistered();
    await this.#simulation.alone({ calldata: encodeWrite(write) }, payer.address);
  }

  estimateAsOwner(write: ContractWrite, owner: Address): Promise<bigint> {
    return this.#simulation.asOwner(owner, encodeWrite(write));
  }

  submit(request: SubmitRequest): Promise<SubmitAnswer> {
    return this.#submitter.submit(request);
  }

  async submission(id: SubmissionId): Promise<SubmissionView | undefined> {
    const write = await this.#transactions.write(id);
    return write === undefined ? undefined : viewOf(write);
  }

  exportWrites(accountId: AccountId, after: string | undefined, rows: number): Promise<ExportRow[]> {
    return exportWrites(this.#given.db, accountId, after, rows);
  }

  async submissionByIdempotencyKey(key: string): Promise<SubmissionView | undefined> {
    const write = await this.#transactions.byIdempotencyKey(key);
    return write === undefined ? undefined : viewOf(write);
  }

  async events(
    id: AccountId,
    after: string | undefined,
    limit: number,
    order: EventOrder = "oldest",
  ): Promise<EventPage> {
    await this.#untilFollowed();
    return this.#events.page(id, after, limit, order);
  }

  async groupsListing(id: AccountId, members: readonly (PkpId | ActionHash)[]): Promise<ReadonlySet<string>> {
    await this.#untilFollowed();
    return this.#members.groupsListing(id, members);
  }

  async membersOf(id: AccountId, groups: readonly string[]): Promise<ReadonlyMap<string, GroupMembers>> {
    await this.#untilFollowed();
    return this.#members.of(id, groups);
  }

  /**
   * From the indexed events, once they include the last answered write; the present owner of each candidate is then
   * read from the contract.
   */
  async accountsOwnedBy(owner: Address): Promise<readonly OwnedAccount[]> {
    await this.#untilFollowed();
    const candidates = await this.#events.accountsEverOwnedBy(owner);
    const accounts = await this.accounts(candidates.map(({ id }) => id));
    return candidates.filter((_, index) => accounts[index]?.owner === owner);
  }

  async isGiven(id: AccountId, owner: Address): Promise<boolean> {
    await this.#untilFollowed();
    return this.#events.isGiven(id, owner);
  }

  async registrationsOf(wallet: Address): Promise<readonly Registration[]> {
    await this.#untilFollowed();
    return this.#events.registrationsOf(wallet);
  }

  /** Until the events of the last answered write are there. */
  async #untilFollowed(): Promise<void> {
    const block = await this.#lastWrite();
    const deadline = Date.now() + FOLLOWED_WITHIN_MS;
    while ((await this.#events.followedBlock()) < block) {
      if (Date.now() > deadline)
        throw new KeywrightError("chain_unavailable", "The newest events cannot be read at the moment.", undefined, {
          retryAfterSeconds: 2,
        });
      this.#following ??= this.#underLease("follow_events", () => this.#follower.follow())
        .catch(() => undefined)
        .finally(() => (this.#following = undefined));
      await this.#following;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async ready(): Promise<Readiness> {
    const problems: string[] = [];
    if (this.#rpc.isOfOtherChain) problems.push(OTHER_CHAIN);
    else if (this.#head.ageSeconds > SILENT_SECONDS) problems.push("No RPC endpoint of the chain answers.");
    const lanes = await this.#lanes.all();
    if (!lanes.some(({ usable }) => usable)) problems.push("No API payer is registered with the contract and has gas.");
    else if (!(await this.#canPayForWrites())) problems.push("No API payer has the gas that a write costs at present.");
    return { ready: problems.length === 0, problems };
  }

  /** True while the price is unknown: an unresponsive chain is reported as a problem of its own. */
  async #canPayForWrites(): Promise<boolean> {
    const asked = this.#fees.now().catch(() => undefined);
    const fees = await within(PRICE_WITHIN_MS, asked, () => undefined);
    return fees === undefined || this.#lanes.canPay(USUAL_WRITE_GAS * fees.maxFeePerGas);
  }

  async stats(): Promise<ChainStats> {
    return {
      lanes: await this.#lanes.all(),
      open: await this.#transactions.openByState(),
      waiting: this.#queue.waiting,
      headBlock: this.#head.number,
      headAgeSeconds: this.#head.ageSeconds,
      followedBlock: await this.#events.followedBlock(),
    };
  }

  endpointHeads(withinMs: number): Promise<readonly EndpointHead[]> {
    return this.#rpc.heads(withinMs);
  }

  async close(): Promise<void> {
    this.#submitter.stop();
    this.#head.stop();
    await Promise.all([...this.#work.map((work) => work.stop()), this.#monitor.stop(), this.#rpc.close()]);
    await this.#leases.release();
  }

  async #underLease(lease: "keep_lanes" | "follow_events", work: () => Promise<void>): Promise<void> {
    if (await this.#leases.claim(lease)) await work();
  }
}
