/**
 * Persistent clients for a given time, while relayer and executor are killed, connections to PostgreSQL break, the
 * chain reorganises, its node hangs and one of its nodes lags: `npm run soak -- --minutes 60`. Afterwards the answers,
 * the chain and the ledger are compared; figures go to bench/soak.json. `wrong` has to be 0.
 */
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openStore } from "../../relayer/store/index";
import { freePort } from "../../scripts/dev/ports";
import { startStack, type Stack } from "../../scripts/dev/stack";
import { expectBalancedBooks } from "../support/books";
import { codeOf, members, newApiAccount, send, type Api, type HttpAnswer } from "../support/http";
import { lagging } from "../support/laggingNode";
import { startPostgres } from "../../scripts/dev/postgres";
import { RpcProxy, cut, forwardThenHang, swallow, type Fault as RpcFault } from "../support/rpcProxy";
import { PostgresProxy } from "../support/statementFaults";

const CODE = "async function main(params) { return params; }";
const PASSING = new Set([409, 429, 500, 503, 504]);
const MAX_WAIT_MS = 10_000;
/** An operation without an outcome this long after a fault is recorded as wrong, and its client continues. */
const GIVEN_UP_AFTER_MS = 60_000;
/** Between two operations of a client. Without a pause the chain outgrows the machine's memory within an hour. */
const MAX_PAUSE_MS = 500;
const CHAIN_KEEPS = { statesKept: 64, blocksKept: 4_000 };
const GENEROUS = {
  RATE_LIMIT_ADDRESS_PER_SECOND: "1000000",
  RATE_LIMIT_STRANGERS_PER_MINUTE: "1000000",
  RATE_LIMIT_KEY_PER_SECOND: "100000",
};

interface Operation {
  readonly kind: "add_group" | "run_action";
  readonly name: string;
  readonly outcome: string;
}

type FaultKind = "kills" | "blips" | "reorgs" | "laggingNode";

/** The disturbances, and when the latest one ended. */
class Disturbance {
  readonly counts: Record<FaultKind, number> = { kills: 0, blips: 0, reorgs: 0, laggingNode: 0 };
  readonly each: Record<string, number> = {};
  readonly longestWaitMs: Record<string, number> = {};
  lastOverAt = Date.now();
  isOn = false;
  #last = "none";

  async make({ name, kind, work }: Fault): Promise<void> {
    this.isOn = true;
    this.#last = name;
    this.counts[kind] += 1;
    this.each[name] = (this.each[name] ?? 0) + 1;
    await work().catch((error: unknown) => console.error(name, error));
    this.isOn = false;
    this.lastOverAt = Date.now();
  }

  /** How long an operation begun then has waited since the last fault ended; 0 during a fault. */
  waitedSince(begun: number): number {
    return this.isOn ? 0 : Date.now() - Math.max(begun, this.lastOverAt);
  }

  noteWait(ms: number): void {
    this.longestWaitMs[this.#last] = Math.max(this.longestWaitMs[this.#last] ?? 0, ms);
  }
}

class Client {
  readonly operations: Operation[] = [];
  readonly late: string[] = [];
  /** When the operation in progress began. */
  begun: number | undefined;
  readonly #disturbance: Disturbance;

  constructor(
    readonly api: Api,
    disturbance: Disturbance,
  ) {
    this.#disturbance = disturbance;
  }

  async perform(): Promise<void> {
    const [name, kind] = [randomUUID(), Math.random() < 0.6 ? "add_group" : "run_action"] as const;
    const headers = { "idempotency-key": randomUUID() };
    const body =
      kind === "add_group" ? { group_name: name, group_description: "" } : { code: CODE, js_params: { name } };
    const begun = (this.begun = Date.now());
    for (let last = "no answer"; ;) {
      const answer = await this.api.post(`/${kind}`, body, { headers }).catch((): HttpAnswer | undefined => undefined);
      const waited = this.#disturbance.waitedSince(begun);
      const outcome = outcomeOf(answer) ?? (waited > GIVEN_UP_AFTER_MS ? "no outcome" : undefined);
      if (outcome !== undefined) {
        this.operations.push({ kind, name, outcome });
        this.#disturbance.noteWait(waited);
        if (waited > MAX_WAIT_MS) this.late.push(`${kind} ${name} for ${waited} ms: ${last}`);
        this.begun = undefined;
        return;
      }
      last = answer?.text ?? "no answer";
      await pause(50);
    }
  }
}

/** Undefined when the client has to ask again. */
function outcomeOf(answer: HttpAnswer | undefined): string | undefined {
  if (answer === undefined) return undefined;
  const code = codeOf(answer);
  if (code !== "already_ran" && PASSING.has(answer.status)) return undefined;
  return answer.status === 200 ? "done" : String(code);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { minutes: { type: "string", default: "60" }, clients: { type: "string", default: "8" } },
  });
  const until = Date.now() + Number(values.minutes) * 60_000;
  const postgres = await startPostgres();
  const database = await PostgresProxy.start(await postgres.database("soak"));
  const port = await freePort();
  let rpc: Promise<RpcProxy> | undefined;
  const proxied = (url: string): string => {
    rpc ??= RpcProxy.startOn(url, port);
    return `http://127.0.0.1:${port}`;
  };
  const stack = await startStack({
    env: { DATABASE_URL: database.url, SIGNUP_CREDIT_CENTS: "1000000", ...GENEROUS },
    servicesRpcUrl: proxied,
    chainKeeps: CHAIN_KEEPS,
  });
  const node = await rpc;
  try {
    const disturbance = new Disturbance();
    const clients = await Promise.all(
      Array.from({ length: Number(values.clients) }, async () => new Client(await newTestClient(stack), disturbance)),
    );
    const working = clients.map(async (client) => {
      while (Date.now() < until) {
        await client.perform();
        await pause(Math.random() * MAX_PAUSE_MS);
      }
    });
    const disturbing = disturb(faultsOf(stack, database, node), { disturbance, clients, until });
    await Promise.all([...working, disturbing]);
    await pause(MAX_WAIT_MS);
    const wrong = (await Promise.all(clients.map(wrongOf))).flat();
    for (const { late } of clients) wrong.push(...late.map((what) => `waited too long: ${what}`));
    wrong.push(...(await wrongBooks(database.url)));
    const report = {
      node: process.version,
      cpus: cpus().length,
      minutes: Number(values.minutes),
      clients: clients.length,
      operations: clients.reduce((sum, { operations }) => sum + operations.length, 0),
      faults: Object.values(disturbance.counts).reduce((sum, count) => sum + count, 0),
      faultsByKind: disturbance.counts,
      faultsByName: { ...disturbance.each, "statements that failed": database.faults.hits },
      longestWaitAfterFaultMs: Math.max(...Object.values(disturbance.longestWaitMs)),
      longestWaitMsAfter: disturbance.longestWaitMs,
      wrong: wrong.length,
    };
    writeFileSync(join(__dirname, "..", "..", "bench", "soak.json"), `${JSON.stringify(report, undefined, 2)}\n`);
    console.log(report, wrong.slice(0, 20));
    process.exitCode = wrong.length === 0 ? 0 : 1;
  } finally {
    await stack.stop();
    await node?.stop();
    await database.stop();
    await postgres.stop();
  }
}

async function newTestClient(stack: Stack): Promise<Api> {
  const { api } = await newApiAccount(stack.baseUrl);
  await api.must("/add_group", {
    group_name: "any",
    group_description: "",
    cid_hashes_permitted: [`0x${"0".repeat(64)}`],
  });
  return api;
}

interface Fault {
  readonly name: string;
  readonly kind: FaultKind;
  readonly work: () => Promise<unknown>;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs with a fault in place for `ms`. */
async function during(ms: number, begin: () => (() => void) | undefined): Promise<void> {
  const end = begin();
  await pause(ms);
  end?.();
}

function faultsOf(stack: Stack, database: PostgresProxy, rpc: RpcProxy | undefined): readonly Fault[] {
  const away = (): (() => void) => {
    database.down();
    return () => database.up();
  };
  const failing = (): (() => void) => {
    database.faults.failRandomly(0.05, Math.random);
    return () => database.faults.disarm();
  };
  const ask = (method: string, ...params: unknown[]): Promise<unknown> =>
    send(stack.rpcUrl, { method: "POST", body: { jsonrpc: "2.0", id: 1, method, params } });
  // anvil loses blocks and nonces when it mines during a reorg.
  const reorg = async (): Promise<void> => {
    await ask("evm_setAutomine", false);
    await pause(500);
    await ask("anvil_reorg", 1 + Math.floor(Math.random() * 3), []);
    await ask("evm_setAutomine", true);
    await ask("evm_mine");
  };
  const nodeBlip = (fault: RpcFault) => (): Promise<void> =>
    during(1_000 + Math.random() * 3_000, () => rpc?.inject(fault));
  const lag = lagging({ url: stack.rpcUrl, blocks: 3, share: 0.4 });
  return [
    { name: "relayer killed", kind: "kills", work: () => stack.restart("relayer", "SIGKILL") },
    { name: "executor killed", kind: "kills", work: () => stack.restart("executor", "SIGKILL") },
    { name: "database connections cut", kind: "blips", work: async () => database.cut() },
    { name: "database away", kind: "blips", work: () => during(1_000 + Math.random() * 4_000, away) },
    { name: "statements fail", kind: "blips", work: () => during(3_000, failing) },
    { name: "node cut off", kind: "blips", work: nodeBlip(cut) },
    { name: "node hangs", kind: "blips", work: nodeBlip(swallow) },
    { name: "node's answers lost", kind: "blips", work: nodeBlip(forwardThenHang) },
    { name: "reorg", kind: "reorgs", work: reorg },
    {
      name: "lagging node",
      kind: "laggingNode",
      work: () => during(4_000 + Math.random() * 4_000, () => rpc?.inject(lag)),
    },
  ];
}

interface Course {
  readonly disturbance: Disturbance;
  readonly clients: readonly Client[];
  readonly until: number;
}

/** In rounds, each fault once per round, in random order. */
async function disturb(faults: readonly Fault[], { disturbance, clients, until }: Course): Promise<void> {
  for (;;) {
    const round = faults.map((fault) => ({ fault, at: Math.random() })).sort((one, other) => one.at - other.at);
    for (const { fault } of round) {
      if (Date.now() >= until - 15_000) return;
      await disturbance.make(fault);
      await recovered(clients, disturbance);
      await pause(3_000 + Math.random() * 5_000);
    }
  }
}

/** Waits for every operation that the fault may have affected, so that the next fault does not hide its duration. */
async function recovered(clients: readonly Client[], { lastOverAt }: Disturbance): Promise<void> {
  while (clients.some(({ begun }) => begun !== undefined && begun <= lastOverAt)) await pause(20);
}

/** Every group exists once, every write is paid once, every recorded run as its record says, nothing is held. */
async function wrongOf({ api, operations }: Client): Promise<string[]> {
  const wrong = operations
    .filter(({ outcome }) => outcome !== "done" && outcome !== "already_ran")
    .map(({ kind, name, outcome }) => `${kind} ${name}: ${outcome}`);
  const listed = (await all(api, "/list_groups")).map(({ name }) => String(name));
  const groups = operations.filter(({ kind }) => kind === "add_group");
  for (const { name } of groups)
    if (listed.filter((one) => one === name).length !== 1)
      wrong.push(`group ${name} is there ${listed.filter((one) => one === name).length} times`);
  const entries = await all(api, "/billing/history");
  const paid = (kind: string): number =>
    entries.filter((entry) => entry["kind"] === kind).reduce((sum, entry) => sum - Number(entry["amount_cents"]), 0);
  if (paid("write") !== groups.length + 1) wrong.push(`${groups.length + 1} writes, ${paid("write")} cents`);
  const runs = await all(api, "/list_runs");
  const recorded = runs.reduce((sum, run) => sum + Number(run["cost_cents"]), 0);
  if (paid("run") !== recorded) wrong.push(`runs recorded at ${recorded} cents, paid ${paid("run")}`);
  const done = operations.filter(({ kind, outcome }) => kind === "run_action" && outcome === "done").length;
  const tried = operations.filter(({ kind }) => kind === "run_action").length;
  if (runs.length < done || runs.length > tried) wrong.push(`${done} to ${tried} runs, ${runs.length} recorded`);
  const { reserved_cents: reserved } = members(await api.get("/billing/balance"));
  if (reserved !== 0) wrong.push(`${String(reserved)} cents are still held`);
  return wrong;
}

async function wrongBooks(databaseUrl: string): Promise<string[]> {
  const store = await openStore({ databaseUrl });
  try {
    await expectBalancedBooks(store.db);
    return [];
  } catch (error) {
    return [`books: ${String(error)}`];
  } finally {
    await store.close();
  }
}

async function all(api: Api, path: string): Promise<Record<string, unknown>[]> {
  const items: Record<string, unknown>[] = [];
  for (let page = 0; ; page++) {
    const answer = await api.get(`${path}?page_size=1000&page_number=${page}`);
    if (answer.status !== 200) throw new Error(`${path}: ${answer.text}`);
    const found = answer.body as Record<string, unknown>[];
    items.push(...found);
    if (found.length < 1000) return items;
  }
}

main().then(
  () => process.exit(),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
