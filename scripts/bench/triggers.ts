/**
 * How late triggers fire: a thousand hooks in a minute, evenly, over ten accounts, on a whole stack on this machine.
 * `node dist/scripts/bench/triggers.js`
 */
import { setTimeout as sleep } from "node:timers/promises";
import { actionHashOf } from "../../protocol/ids";
import { cidOfCode } from "../../protocol/cid";
import { createAccount, everyItem, type Client } from "../../client";
import { startStack } from "../dev/stack";

const CODE = "async function main({ n }) { return n; }";
const FIRINGS = 1_000;
const ACCOUNTS = 10;
const MINUTE_MS = 60_000;

interface Hooked {
  readonly client: Client;
  readonly id: string;
}

async function hooked(baseUrl: string): Promise<Hooked> {
  const { client } = await createAccount({ baseUrl }, { account_name: "bench", account_description: "" });
  const cid_hashes_permitted = [actionHashOf(await cidOfCode(CODE))];
  await client.addGroup({ group_name: "g", group_description: "", cid_hashes_permitted });
  const { id } = await client.createTrigger({ name: "t", code: CODE, hook: { verification: "none" } });
  return { client, id };
}

/** In ms: until it was claimed, and until its end without the time that its code took. */
interface Late {
  readonly atMs: number;
  readonly claimed: number;
  readonly ended: number;
}

async function latenessOf({ client, id }: Hooked): Promise<Late[]> {
  const lateness: Late[] = [];
  for await (const firing of everyItem((page) => client.listFirings({ id, ...page }))) {
    const { due_at, started_at, ended_at, duration_ms = 0 } = firing;
    const [due, started, ended] = [due_at, started_at, ended_at].map((time) => Date.parse(time ?? ""));
    if (due === undefined || started === undefined || ended === undefined) continue;
    lateness.push({ atMs: due, claimed: started - due, ended: ended - due - duration_ms });
  }
  return lateness;
}

function figuresOf(all: readonly number[]): object {
  const sorted = [...all].sort((one, other) => one - other);
  const at = (part: number): number =>
    Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN);
  return { p50Ms: at(0.5), p90Ms: at(0.9), p99Ms: at(0.99), mostMs: at(1) };
}

async function main(): Promise<void> {
  const stack = await startStack({ env: { SIGNUP_CREDIT_CENTS: "100000" } });
  try {
    const accounts: Hooked[] = [];
    for (let made = 0; made < ACCOUNTS; made += 1) accounts.push(await hooked(stack.baseUrl));
    const start = Date.now();
    for (let sent = 0; sent < FIRINGS; sent += 1) {
      await sleep(Math.max(0, start + (sent * MINUTE_MS) / FIRINGS - Date.now()));
      const { id } = accounts[sent % ACCOUNTS] as Hooked;
      const body = JSON.stringify({ n: sent });
      void fetch(`${stack.baseUrl}/core/v1/hooks/${id}`, { method: "POST", body });
    }
    await sleep(10_000);
    const all = (await Promise.all(accounts.map(latenessOf))).flat();
    const claimed = figuresOf(all.map((one) => one.claimed));
    const ended = figuresOf(all.map((one) => one.ended));
    const latest = [...all].sort((one, other) => other.ended - one.ended).slice(0, 12);
    const slowest = latest.map(
      ({ atMs, ended: late }) => `${Math.round(late)} ms at ${Math.round((atMs - start) / 1_000)} s`,
    );
    process.stdout.write(`${JSON.stringify({ fired: all.length, claimed, ended, slowest })}\n`);
  } finally {
    await stack.stop();
  }
}

void main();
