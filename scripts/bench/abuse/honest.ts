/**
 * An account that does all that accounts do, one after the other, as others attack: in a thread of its own, so that it
 * does not wait for the attackers' requests in the loop of this bench.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { hexlify, JsonRpcProvider, toBeHex, Wallet } from "ethers";
import { HELLO } from "../run/http";
import type { Bed } from "./bed";
import { Caller, type AbuseAccount, type RunEnd } from "./callers";

export const ACTS = ["hello", "sign", "fetch", "large", "write", "chain", "signUp"] as const;
export type Act = (typeof ACTS)[number];
/** What it does one after the other, beside others at the same time, and how long it pauses between. */
const TURNS: readonly { readonly acts: readonly Act[]; readonly pauseMs: number }[] = [
  { acts: ["hello", "sign", "hello", "sign", "fetch"], pauseMs: 50 },
  { acts: ["large"], pauseMs: 500 },
  { acts: ["write"], pauseMs: 1_000 },
  { acts: ["chain"], pauseMs: 1_000 },
  { acts: ["signUp"], pauseMs: 5_000 },
];

const SIGN = `async function main({ pkpId }) {
  return Actions.signDigest({ pkpId, digest: "0x" + "11".repeat(32) });
}`;
/** Its bytes count against the memory for all large code. */
const LARGE = HELLO.padEnd(100 * 1_024, " ");
const fetchCode = (servers: string): string =>
  `async function main() { return (await (await fetch("http://${servers}/1-mib")).arrayBuffer()).byteLength; }`;

/** What reaches the thread. */
interface Facts {
  readonly baseUrl: string;
  readonly rpcUrl: string;
  readonly honest: AbuseAccount;
  readonly servers: string;
  /** So that each is of a network of its own. */
  readonly earlierSignUps: number;
}
export type Ends = Readonly<Record<Act, readonly RunEnd[]>>;
interface Told {
  readonly ends: Ends;
  readonly signUps: number;
}

let earlierSignUps = 0;

/** Begins; what is returned ends it, and tells how each of its requests ended. */
export function startHonest({ stack, honest, servers }: Bed): () => Promise<Ends> {
  const facts: Facts = { baseUrl: stack.baseUrl, rpcUrl: stack.rpcUrl, honest, servers, earlierSignUps };
  const thread = new Worker(__filename, { workerData: facts });
  const told = once(thread, "message") as Promise<[Told]>;
  told.catch(() => undefined);
  return async () => {
    thread.postMessage("end");
    const [{ ends, signUps }] = await told;
    earlierSignUps = signUps;
    await thread.terminate();
    return ends;
  };
}

/** The connection ended without an answer. */
const unanswered = (error: { code?: string }): RunEnd => ({
  ...{ ms: NaN, status: 0, costCents: 0 },
  end: error.code ?? "unanswered",
});

async function work({ baseUrl, rpcUrl, honest, servers, earlierSignUps: earlier }: Facts): Promise<Told> {
  let signUps = earlier;
  let isOver = false;
  parentPort?.once("message", () => (isOver = true));
  const caller = new Caller(baseUrl, ACTS.length);
  const transfer = await transfersOn(rpcUrl);
  const newcomer = (): AbuseAccount => ({
    apiKey: undefined,
    pkpId: "",
    address: `${12 + (++signUps >> 8)}.${signUps & 255}.0.2`,
  });
  const acts: Readonly<Record<Act, () => Promise<RunEnd>>> = {
    hello: () => caller.run(honest, HELLO, { timeoutMs: 60_000 }),
    sign: () => caller.run(honest, SIGN, { timeoutMs: 60_000 }),
    fetch: () => caller.run(honest, fetchCode(servers), { timeoutMs: 60_000 }),
    large: () => caller.run(honest, LARGE, { timeoutMs: 60_000 }),
    write: () => caller.send(honest, "/add_group", JSON.stringify({ group_name: "honest", group_description: "" })),
    chain: async () => ({ ms: await transfer(), status: 200, end: "none", costCents: 0 }),
    signUp: () =>
      caller.send(newcomer(), "/new_account", JSON.stringify({ account_name: "n", account_description: "" })),
  };
  const ends = Object.fromEntries(ACTS.map((name) => [name, []])) as unknown as Record<Act, RunEnd[]>;
  await Promise.all(
    TURNS.map(async (turn) => {
      for (let n = 0; !isOver; n++) {
        const name = turn.acts[n % turn.acts.length] as Act;
        ends[name].push(await acts[name]().catch(unanswered));
        await sleep(turn.pauseMs);
      }
    }),
  );
  await caller.close();
  return { ends, signUps };
}

/** Moves gas on the chain without this service; how long the chain took for it, in ms. */
async function transfersOn(rpcUrl: string): Promise<() => Promise<number>> {
  const provider = new JsonRpcProvider(rpcUrl, undefined, { staticNetwork: true, cacheTimeout: -1 });
  const wallet = new Wallet(hexlify(randomBytes(32)), provider);
  await provider.send("hardhat_setBalance", [wallet.address, toBeHex(10n ** 21n)]);
  return async () => {
    const transaction = await wallet.populateTransaction({ to: wallet.address, value: 1n });
    const raw = await wallet.signTransaction(transaction);
    const startedAt = performance.now();
    const hash: unknown = await provider.send("eth_sendRawTransaction", [raw]);
    while ((await provider.send("eth_getTransactionReceipt", [hash])) === null) await sleep(1);
    return performance.now() - startedAt;
  };
}

if (!isMainThread) void work(workerData as Facts).then((told) => parentPort?.postMessage(told));
