/**
 * One simulated relayer: the real chain module, credits and idempotency over a store and endpoints that obey the
 * simulated world. A killed one gets no answer any more, from anything.
 */
import { Kysely, type PostgresPool, type PostgresPoolClient } from "kysely";
import { pino } from "pino";
import type { ContractWrite, ExecutorAnswer, ExecutorRequest } from "../../../protocol/executor";
import { KeywrightError } from "../../../protocol/errors";
import type { AccountId, Address } from "../../../protocol/ids";
import { encodeWrite } from "../../../relayer/chain/abi/contract";
import { openChain, type ChainTuning } from "../../../relayer/chain";
import type { EndpointPort } from "../../../relayer/chain/rpc/client";
import type { Chain, ExecutorPort, ExecutorWriteCall, SubmitAnswer } from "../../../relayer/chain/types";
import { Credits } from "../../../relayer/credits";
import { Idempotency, requestName } from "../../../relayer/middleware/idempotency";
import type { Database } from "../../../relayer/store/database";
import { createIdempotencyStore, type IdempotencyStore } from "../../../relayer/store/idempotency";
import { Instance } from "../../../relayer/store/instance";
import type { Side } from "../statementFaults";
import { CONTRACT_ADDRESS, encodeTransaction, payerAddress } from "./chain";
import type { Node } from "./endpoint";
import type { ExecutorFault } from "./steps";
import { SimulatedDialect } from "./queries";
import type { SimulatedTime } from "./time";

export interface World {
  readonly time: SimulatedTime;
  readonly pool: PostgresPool;
  readonly nodes: readonly Node[];
  readonly chainId: number;
  /** Uniform in [0, 1), from the history's seed. */
  readonly random: () => number;
  executorFault: ExecutorFault | "none";
}

/** Blocks become final later than the follower believes an empty list of logs. */
export const FINALITY_DEPTH = 9;
export const BLOCK_MS = 2_000;
export const PAYERS = 2;

/** Intervals a few times the usual ones, since every turn costs the simulator time; deadlines as they are. */
const TUNING: Partial<ChainTuning> = {
  slowestPollMs: 2_000,
  fastestPollMs: 500,
  lookEveryMs: 2_000,
  maintainEveryMs: 6_000,
  sweepEveryMs: 4_000,
  stuckAfterMs: 12_000,
  finalityDepth: FINALITY_DEPTH,
};

const encodedWrites = new Map<string, string>();

/** As the executor encodes it, which in a history need not be done for each of a write's parties. */
export function encodedOnce(write: ContractWrite): string {
  const name = JSON.stringify(write);
  const calldata = encodedWrites.get(name) ?? encodeWrite(write);
  encodedWrites.set(name, calldata);
  return calldata;
}

const LOG = pino({ level: process.env.TEST_LOG_LEVEL ?? "silent" });

const never = <T>(): Promise<T> => new Promise(() => undefined);

interface Death {
  left: number;
  readonly side: Side;
}

export class SimulatedRelayer {
  isAlive = true;
  chain!: Chain;
  credits!: Credits;
  readonly db: Kysely<Database>;
  readonly instance: Instance;
  #death: Death | undefined;
  #statementFault: Death | undefined;
  #connection: { readonly of: PostgresPoolClient; readonly client: PostgresPoolClient } | undefined;
  #idempotencyStore!: IdempotencyStore;
  #idempotency!: Idempotency;
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
    this.db = new Kysely<Database>({ dialect: new SimulatedDialect(this.#pool(world.pool)) });
    this.instance = new Instance({ db: this.db, onError: () => undefined, renewalMs: 6_000 });
  }

  async start(): Promise<void> {
    const { db, instance } = this;
    await instance.start();
    const onError = (): void => undefined;
    this.credits = new Credits({
      db,
      instanceId: instance.id,
      prices: { managementWriteCents: 1, runSecondCents: 1 },
      signup: { cents: SIGNUP_CENTS, dailyCapCents: undefined, everyAccount: true },
      deployment: "simulated",
      onError,
    });
    const { reservations } = this.credits;
    this.chain = await openChain({
      db,
      instanceId: instance.id,
      executor: this.#executor,
      log: LOG,
      hooks: {
        onBegin: (ids, trx) => reservations.bindWrites(ids, trx),
        onOutcome: (outcomes, trx) => reservations.endWrites(outcomes, trx),
        onAbandon: (id) => reservations.abandonWrite(id),
      },
      rpcUrls: this.#world.nodes.map((_, index) => String(index)),
      connect: (url) => this.#endpoint(this.#world.nodes[Number(url)] as Node),
      chainId: BigInt(this.#world.chainId),
      contractAddress: CONTRACT_ADDRESS as Address,
      payerCount: PAYERS,
      tuning: TUNING,
    });
    this.#idempotencyStore = createIdempotencyStore(db, instance.id);
    this.#idempotency = new Idempotency(this.#idempotencyStore);
  }

  /** One request of a client, as the routes make it. */
  async addGroup(account: string, name: string, key: string): Promise<SubmitAnswer> {
    if (!this.isAlive) throw connectionLost();
    const answer = this.#idempotency.once("addGroup", requestName("addGroup", account, key, name), (operation) =>
      this.chain.submit({
        accountId: account as AccountId,
        kind: "add_group",
        credential: { type: "key", key: "-" },
        write: { functionName: "addGroup", args: [account, name, "", [], []] },
        reserve: (submissionId) =>
          this.credits.reservations.reserveWrite({ accountId: account as AccountId, cents: 1, submissionId }),
        idempotencyKey: operation.id,
        operation,
      }),
    );
    return (await answer) as SubmitAnswer;
  }

  /** Background work that is not the chain module's. */
  async tidy(): Promise<void> {
    await this.#idempotencyStore.catchUp();
    await this.credits.reservations.sweep();
  }

  /** At the n-th message to anything from now on, before or after it took effect. */
  killAt(nth: number, side: Side): void {
    this.#death = { left: nth, side };
  }

  /** The n-th statement from now on loses its connection. */
  failStatement(nth: number, side: Side): void {
    this.#statementFault = { left: nth, side };
  }

  kill(): void {
    this.isAlive = false;
  }

  async #message<T>(work: () => Promise<T>): Promise<T> {
    if (!this.isAlive) return never();
    const death = this.#death;
    const side = countDown(death);
    if (side === "before") this.kill();
    if (!this.isAlive) return never();
    const answer = await work();
    // The history's faults may have ended before a slow answer came.
    if (side === "after" && this.#death === death) this.kill();
    return this.isAlive ? answer : never();
  }

  #endpoint(node: Node): EndpointPort {
    const { time, random } = this.#world;
    const callTogether: EndpointPort["callTogether"] = (calls) =>
      this.#message(async () => {
        await time.sleep(1 + Math.floor(random() * node.wayMs));
        const answers = node.answer(calls);
        await time.sleep(1 + Math.floor(random() * node.wayMs));
        return answers;
      });
    return { callTogether, close: () => Promise.resolve() };
  }

  readonly #executor: ExecutorPort = {
    call: <C extends ExecutorWriteCall>(name: C, request: ExecutorRequest<C>) =>
      this.#message(async () => {
        await this.#world.time.sleep(5);
        if (this.#world.executorFault === "down")
          throw new KeywrightError("executor_unavailable", "The executor is down (a fault of the history).");
        return this.#sign(name, request);
      }),
  };

  #sign<C extends ExecutorWriteCall>(name: C, request: ExecutorRequest<C>): ExecutorAnswer<C> {
    const answers: { [N in ExecutorWriteCall]?: (asked: ExecutorRequest<N>) => ExecutorAnswer<N> } = {
      authorizeWrites: ({ writes }) => ({
        writes: writes.map(({ write }) => {
          const calldata = encodedOnce(write);
          return { calldata, tag: calldata };
        }),
      }),
      signAsPayer: ({ payer, nonce, calls: carried, maxFeePerGas, gasLimit }) => {
        if (this.#world.executorFault === "declines") throw declined();
        const calls = carried.map(({ calldata }) => calldata);
        return encodeTransaction({ payer, nonce, calls, maxFee: maxFeePerGas, gas: String(gasLimit) });
      },
      signNoop: ({ payer, nonce, maxFeePerGas }) =>
        encodeTransaction({ payer, nonce, calls: [], maxFee: maxFeePerGas, gas: "21000" }),
      signTopUp: ({ nonce, maxFeePerGas, toPayer, amountWei }) =>
        encodeTransaction({
          payer: 0,
          nonce,
          calls: [],
          maxFee: maxFeePerGas,
          gas: "21000",
          toPayer,
          value: amountWei,
        }),
      payers: ({ count }) => ({
        adminPayer: payerAddress(0),
        payers: Array.from({ length: count }, (_, index) => payerAddress(index + 1)),
      }),
    };
    const answer = answers[name];
    if (answer === undefined) throw new TypeError(`the simulated executor does not know ${name}`);
    return answer(request);
  }

  #pool(pool: PostgresPool): PostgresPool {
    const connect = async (): Promise<PostgresPoolClient> => {
      if (!this.isAlive) return never();
      const client = await pool.connect();
      if (this.isAlive) return this.#client(client);
      client.release();
      return never();
    };
    return { connect, end: () => Promise.resolve() };
  }

  /** The store has one connection, so this relayer's is made once; a lost one is a new one to whoever asks next. */
  #client(client: PostgresPoolClient): PostgresPoolClient {
    if (this.#connection?.of !== client) this.#connection = { of: client, client: this.#newClient(client) };
    return this.#connection.client;
  }

  #newClient(client: PostgresPoolClient): PostgresPoolClient {
    const { time } = this.#world;
    const send = client.query as unknown as (sql: string, parameters: readonly unknown[]) => Promise<unknown>;
    const execute = async (sql: string, parameters: readonly unknown[]): Promise<unknown> => {
      time.atWork += 1;
      time.note();
      return send(sql, parameters).finally(() => (time.atWork -= 1));
    };
    let isLost = false;
    const end = async (): Promise<void> => {
      await execute("rollback", []).catch(() => undefined);
      isLost = false;
      client.release();
    };
    const query = async (sql: string, parameters: readonly unknown[]): Promise<unknown> => {
      if (isLost) throw connectionLost();
      if (!this.isAlive) {
        await end();
        return never();
      }
      const fault = countDown(this.#statementFault);
      if (fault === "before") {
        isLost = true;
        throw connectionLost();
      }
      const killedAt = countDown(this.#death);
      const answer = killedAt === "before" ? undefined : await execute(sql, parameters);
      if (killedAt !== undefined) this.kill();
      if (!this.isAlive) {
        await end();
        return never();
      }
      if (fault === "after") {
        isLost = true;
        throw connectionLost();
      }
      return answer;
    };
    return {
      query: query as unknown as PostgresPoolClient["query"],
      release: () => (isLost ? void end() : client.release()),
    };
  }
}

export const SIGNUP_CENTS = 1_000;

function countDown(at: Death | undefined): Side | undefined {
  if (at === undefined || at.left < 0) return undefined;
  at.left -= 1;
  return at.left < 0 ? at.side : undefined;
}

const declined = (): KeywrightError => new KeywrightError("not_authorized", "Declined (a fault of the history).");

const connectionLost = (): KeywrightError =>
  new KeywrightError(
    "database_unavailable",
    "The connection was lost (a fault of the history).",
    {},
    { retryAfterSeconds: 1 },
  );
