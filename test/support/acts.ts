/**
 * Acts of every kind under idempotency keys, as clients who do not give up make them, while statements fail: then the chain, the books and the answers are
 * compared. An act is done at most once, charged if and only if it was done, and whoever repeats it gets its outcome.
 */
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { sql } from "kysely";
import { expectBalancedBooks } from "./books";
import { eventually } from "./chainBed";
import { Api, NO_PERMISSIONS, codeOf, members, type HttpAnswer } from "./http";
import type { RelayerBed } from "./relayerBed";
import type { StatementFaults } from "./statementFaults";

export const ACT_KINDS = ["add_group", "new_account", "add_usage_api_key", "add_action", "run_action"] as const;
export type ActKind = (typeof ACT_KINDS)[number];

const CODE = "async function main(params) { return params; }";
/** What a client may be told while something fails; everything else is an outcome. */
const PASSING = new Set([409, 429, 503, 504]);
const LONGEST_WAIT_MS = 10_000;

/** An account that may do everything, with a group that lists any action. */
export async function actor(relayer: RelayerBed): Promise<Api> {
  const made = await new Api(relayer.baseUrl).must("/new_account", { account_name: "a", account_description: "" });
  const api = new Api(relayer.baseUrl, String(made["api_key"]));
  await api.must("/add_group", { group_name: "any", group_description: "", cid_hashes_permitted: [`0x${"0".repeat(64)}`] });
  return api;
}

export interface Done {
  readonly kind: ActKind;
  /** Found again on the chain, or in the executor's count. */
  readonly name: string;
  readonly key: string;
  readonly answer: HttpAnswer;
  /** From the moment the fault was over. */
  readonly waitedMs: number;
}

export interface ActOptions {
  /** Asked before each try: whether the fault is over, so that waiting counts. */
  readonly isOver?: () => boolean;
}

/** One act, repeated under its key until it has an outcome. */
export async function insist(api: Api, kind: ActKind, { isOver = () => true }: ActOptions = {}): Promise<Done> {
  const [name, key] = [randomUUID(), randomUUID()];
  let since = Date.now();
  for (;;) {
    const over = isOver();
    const answer = await tryOnce(api, kind, name, key);
    if (answer !== undefined && (!PASSING.has(answer.status) || codeOf(answer) === "already_ran"))
      return { kind, name, key, answer, waitedMs: Date.now() - since };
    if (!over) since = Date.now();
    if (Date.now() - since > LONGEST_WAIT_MS) throw new Error(`${kind} had no outcome ${LONGEST_WAIT_MS} ms after the fault: ${answer?.text ?? "no answer"}`);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}

const tryOnce = (api: Api, kind: ActKind, name: string, key: string): Promise<HttpAnswer | undefined> =>
  REQUESTS[kind](api, name, { headers: { "idempotency-key": key } }).catch(() => undefined);

const REQUESTS: Record<ActKind, (api: Api, name: string, options: { headers: Record<string, string> }) => Promise<HttpAnswer>> = {
  add_group: (api, name, options) => api.post("/add_group", { group_name: name, group_description: "" }, options),
  new_account: (api, name, options) => api.with(undefined).post("/new_account", { account_name: name, account_description: "" }, options),
  add_usage_api_key: (api, name, options) => api.post("/add_usage_api_key", { ...NO_PERMISSIONS, name }, options),
  add_action: (api, name, options) =>
    api.post("/add_action", { action_ipfs_cid: "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX", name, description: "" }, options),
  run_action: (api, name, options) => api.post("/run_action", { code: CODE, js_params: { name } }, options),
};

/** Nothing is held any more, the books balance, and every act of the account was done once and paid once. */
export async function expectExactly(relayer: RelayerBed, api: Api, acts: readonly Done[]): Promise<void> {
  const accountId = String(members(await api.get("/account"))["id"]);
  await eventually("no credit is held", async () => (await relayer.credits.balance(accountId as never)).reservedCents === 0, LONGEST_WAIT_MS);
  await expectBalancedBooks(relayer.store.db);
  for (const act of acts) await expectOnce(relayer, api, act);
  const { rows } = await sql<{ kind: string; n: number }>`
    select kind, count(*) as n from ledger_entries where account_id = ${accountId} and kind in ('run', 'write') group by kind`.execute(relayer.store.db);
  const paid = Object.fromEntries(rows.map(({ kind, n }) => [kind, n]));
  const writes = acts.filter(({ kind }) => kind !== "run_action" && kind !== "new_account").length;
  expect(paid["write"] ?? 0, "writes paid, beside the group of the beginning").to.equal(writes + 1);
  const runs = acts.filter(({ kind, name }) => kind === "run_action" && runsOf(relayer, name) === 1).length;
  expect(paid["run"] ?? 0, "runs paid").to.equal(runs);
}

const runsOf = (relayer: RelayerBed, name: string): number => relayer.executor.runs.get(JSON.stringify({ name })) ?? 0;

async function expectOnce(relayer: RelayerBed, api: Api, { kind, name, answer }: Done): Promise<void> {
  const what = `${kind} ${name}: ${answer.text}`;
  if (kind === "run_action") {
    expect(answer.status === 200 || codeOf(answer) === "already_ran", what).to.equal(true);
    expect(runsOf(relayer, name), what).to.equal(1);
    return;
  }
  expect(answer.status, what).to.equal(200);
  if (kind === "new_account") expect(members(answer)["api_key"], `the secret is not lost: ${what}`).to.be.a("string");
  if (kind === "add_usage_api_key") expect(members(answer)["usage_api_key"], `the secret is not lost: ${what}`).to.be.a("string");
  if (kind === "add_group") await expectListed(api, "/list_groups", name, what);
  if (kind === "add_usage_api_key") await expectListed(api, "/list_api_keys", name, what);
  if (kind === "new_account") {
    const { rows } = await sql<{ n: number }>`select count(*) as n from chain_events where name = 'AccountCreated' and not removed and not retracted
      and account_id = ${String(members(answer)["api_key_hash"])}`.execute(relayer.store.db);
    expect(rows[0]?.n, what).to.be.at.most(1);
  }
}

async function expectListed(api: Api, path: string, name: string, what: string): Promise<void> {
  const listed = (await api.get(`${path}?page_size=1000`)).body as { name: string }[];
  expect(listed.filter((item) => item.name === name).length, what).to.equal(1);
}

export interface HistoryOptions {
  readonly faults: StatementFaults;
  readonly clients: number;
  /** As many faults as are to fall, at least. */
  readonly hits: number;
  readonly random: () => number;
}

/** Clients with accounts of their own act at once and at random while statements fail at random; answers how long one had to wait after the last fault. */
export async function actThroughFaults(
  relayer: RelayerBed,
  { faults, clients, hits, random }: HistoryOptions,
): Promise<{ acts: number; longestWaitMs: number }> {
  const apis = await Promise.all(Array.from({ length: clients }, () => actor(relayer)));
  const [from, until] = [faults.hits, faults.hits + hits];
  faults.rain(0.03, random);
  const isOver = (): boolean => faults.hits >= until;
  const histories = await Promise.all(
    apis.map(async (api) => {
      const acts: Done[] = [];
      while (!isOver()) {
        const kind = ACT_KINDS[Math.floor(random() * ACT_KINDS.length)] ?? "add_group";
        acts.push(await insist(api, kind, { isOver: () => isOver() && (faults.disarm(), true) }));
      }
      return { api, acts };
    }),
  );
  faults.disarm();
  expect(faults.hits - from).to.be.at.least(hits);
  for (const { api, acts } of histories) await expectExactly(relayer, api, acts);
  const all = histories.flatMap(({ acts }) => acts);
  return { acts: all.length, longestWaitMs: Math.max(...all.map(({ waitedMs }) => waitedMs)) };
}
