/** The chain room put together. */
import type { AccountId, Address } from "../../protocol/ids";
import type { ContractWrite } from "../../protocol/executor";
import { Carrier } from "./carrier";
import { Duties } from "./duties";
import { Events } from "./events";
import { FeeOracle } from "./fees";
import { Follower } from "./follower";
import { Head } from "./head";
import { Keeper } from "./keeper";
import { Lanes } from "./lanes";
import { LastWrites } from "./lastWrites";
import { networkFacts } from "./network";
import { wantPayers } from "./operations";
import { Reads } from "./reads";
import { SubmissionRecords, viewOf } from "./records";
import { Repeated } from "./repeated";
import { RpcClient } from "./rpc/client";
import { CHAIN_TUNING, type ChainOptions, type ChainTuning } from "./settings";
import { OPEN_STATES, type SubmissionState } from "./states";
import { Submitter } from "./submitter";
import { Turns } from "./turns";
import type { Chain, ChainStats, EventPage, NetworkFacts, Readiness, SubmissionId, SubmissionView, SubmitAnswer, SubmitRequest } from "./types";

/** Longest the chain may be silent before `/ready` says so. */
const SILENT_SECONDS = 15;

/** Starts the chain room. Neither chain nor executor need be up: what waits for them goes on when they are. */
export async function openChain(options: ChainOptions): Promise<Chain> {
  const chain = new ChainRoom(options, { ...CHAIN_TUNING, ...options.tuning });
  await chain.start();
  return chain;
}

class ChainRoom extends Reads implements Chain {
  readonly network: NetworkFacts;
  readonly #rpc: RpcClient;
  readonly #head: Head;
  readonly #lanes: Lanes;
  readonly #turns: Turns;
  readonly #records: SubmissionRecords;
  readonly #carrier: Carrier;
  readonly #submitter: Submitter;
  readonly #duties: Duties;
  readonly #keeper: Keeper;
  readonly #follower: Follower;
  readonly #events: Events;
  readonly #work: readonly Repeated[];

  constructor(
    private readonly given: ChainOptions,
    tuning: ChainTuning,
  ) {
    const { db, instanceId, executor, hooks, log, rpcUrls, chainId, contractAddress, confirmationsBeforeAnswer = 1, deploymentBlock = 0 } = given;
    const rpc = new RpcClient({ urls: rpcUrls, chainId, timeoutMs: tuning.rpcTimeoutMs, deadlineMs: tuning.rpcDeadlineMs });
    const lastWrites = new LastWrites(db, given.storeIsOurs === true);
    const minBlock = (): Promise<number> => lastWrites.block();
    super({ rpc, contractAddress, minBlock });
    this.network = networkFacts(chainId, contractAddress);
    this.#rpc = rpc;
    this.#head = new Head({ rpc, log, fastestPollMs: tuning.fastestPollMs, slowestPollMs: tuning.slowestPollMs });
    this.#lanes = new Lanes({ db, maxInFlight: tuning.maxInFlightPerLane });
    this.#turns = new Turns({ db, maxWaitingPerAccount: tuning.maxWaitingPerAccount, maxWaiting: tuning.maxWaiting });
    this.#records = new SubmissionRecords(db, instanceId, hooks);
    const fees = new FeeOracle(rpc, tuning.maxFeeCapWei);
    const shared = { rpc, records: this.#records, executor, head: this.#head, fees, contractAddress, tuning };
    this.#carrier = new Carrier({
      ...shared,
      log,
      onEnd: (row) => {
        lastWrites.note(row.block_number ?? 0);
        this.#submitter.noteEnd(row);
      },
    });
    this.#submitter = new Submitter({ ...shared, carrier: this.#carrier, hooks, lanes: this.#lanes, turns: this.#turns, minBlock, confirmationsBeforeAnswer });
    this.#duties = new Duties(db, instanceId);
    this.#keeper = new Keeper({ db, rpc, executor, records: this.#records, carrier: this.#carrier, log, tuning, apiPayers: () => this.apiPayers() });
    this.#follower = new Follower({ db, rpc, contractAddress, deploymentBlock, finalityDepth: tuning.finalityDepth, log, onReorg: () => lastWrites.forget() });
    this.#events = new Events(db);
    this.#work = [
      new Repeated("look after the lanes", tuning.keepEveryMs, log, () => this.#onDuty("keep_lanes", () => this.#keeper.keep())),
      new Repeated("take up submissions", tuning.sweepEveryMs, log, () => this.#sweep()),
      new Repeated("follow events", tuning.slowestPollMs, log, () => this.#onDuty("follow_events", () => this.#follower.follow())),
    ];
  }

  async start(): Promise<void> {
    await wantPayers(this.given.db, this.given.payerCount);
    this.#head.start();
    for (const work of this.#work) work.start();
  }

  simulate(write: ContractWrite): Promise<void> {
    return this.#submitter.simulate(write).then(() => undefined);
  }

  submit(request: SubmitRequest): Promise<SubmitAnswer> {
    return this.#submitter.submit(request);
  }

  async submission(id: SubmissionId): Promise<SubmissionView | undefined> {
    const row = await this.#records.load(id);
    return row === undefined || row.account_id === null ? undefined : viewOf(row);
  }

  async submissionByIdempotencyKey(key: string): Promise<SubmissionView | undefined> {
    const row = await this.#records.byIdempotencyKey(key);
    return row === undefined ? undefined : viewOf(row);
  }

  events(id: AccountId, after: string | undefined, limit: number): Promise<EventPage> {
    return this.#events.page(id, after, limit);
  }

  /** From the followed events; each candidate is asked for its present owner, since the follower may be a block behind. */
  async accountsOwnedBy(owner: Address): Promise<readonly AccountId[]> {
    const candidates = await this.#events.accountsEverOwnedBy(owner);
    const accounts = await this.accounts(candidates);
    return candidates.filter((_, index) => accounts[index]?.owner === owner);
  }

  async ready(): Promise<Readiness> {
    const problems: string[] = [];
    if (this.#head.ageSeconds > SILENT_SECONDS) problems.push("No RPC endpoint of the chain answers.");
    const lanes = await this.#lanes.all();
    if (!lanes.some(({ usable }) => usable)) problems.push("No API payer is registered with the contract and has gas.");
    return { ready: problems.length === 0, problems };
  }

  async stats(): Promise<ChainStats> {
    const { db } = this.given;
    const open = await db
      .selectFrom("submissions")
      .select(["state", db.fn.countAll<number>().as("count")])
      .where("state", "in", OPEN_STATES)
      .groupBy("state")
      .execute();
    return {
      lanes: await this.#lanes.all(),
      open: Object.fromEntries(open.map(({ state, count }): [SubmissionState, number] => [state, count])),
      waiting: this.#turns.waiting,
      headBlock: this.#head.number,
      headAgeSeconds: this.#head.ageSeconds,
      followedBlock: await this.#events.followedBlock(),
    };
  }

  async close(): Promise<void> {
    this.#submitter.stop();
    this.#head.stop();
    await Promise.all([...this.#work.map((work) => work.stop()), this.#carrier.stop(), this.#rpc.close()]);
    await this.#duties.release();
  }

  async #onDuty(duty: "keep_lanes" | "follow_events", work: () => Promise<void>): Promise<void> {
    if (await this.#duties.claim(duty)) await work();
  }

  async #sweep(): Promise<void> {
    for (const row of await this.#records.takeOver(this.#carrier.carriedIds)) this.#carrier.carry(row);
  }
}
