/**
 * Attacks by several accounts at once, one for each resource that accounts share: places and queue, fetches, memory of
 * code, bodies and ops, the event loops, the queue of writes, new accounts. Each is as strong with two accounts as with
 * sixty-four.
 */
import { randomUUID } from "node:crypto";
import { connect, type Socket } from "node:net";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { MIB } from "../../../protocol/limits";
import { HELLO } from "../run/http";
import type { AbuseAccount, Caller, RunEnd } from "./callers";

export interface Crowd {
  readonly caller: Caller;
  readonly accounts: readonly AbuseAccount[];
  readonly baseUrl: string;
  /** Host and port of the servers that actions fetch from. */
  readonly servers: string;
  /** Ends the attack: its clients disconnect. */
  readonly over: AbortSignal;
}

export interface CrowdAttack {
  readonly name: string;
  /** What it takes is charged. Unset where requests without an account attack. */
  readonly isPaid: boolean;
  /** So many of its runs may be free. */
  readonly freeRuns?: number;
  /** The shortest time in which it does damage. */
  readonly leastSeconds?: number;
  attack(crowd: Crowd): Promise<RunEnd[]>;
}

/** So many at once, at least one of each account. */
const together = async (
  { accounts, over }: Crowd,
  atOnce: number,
  act: (account: AbuseAccount, index: number) => Promise<RunEnd>,
): Promise<RunEnd[]> => {
  const ends: RunEnd[] = [];
  const each = Math.ceil(atOnce / accounts.length);
  const attackers = accounts.flatMap((account) => Array.from({ length: each }, () => account));
  await Promise.all(
    attackers.map(async (account, index) => {
      while (!over.aborted) {
        const end = await act(account, index).catch((error: unknown) => goneOr(error, over));
        ends.push(end);
        if (end.status !== 200) await sleep(200);
      }
    }),
  );
  return ends;
};

/** The attacker left before it had an answer. */
function goneOr(error: unknown, over: AbortSignal): RunEnd {
  const end = over.aborted ? "left" : ((error as { code?: string }).code ?? "failed");
  return { ms: 0, status: 0, end, costCents: 0 };
}

const runs =
  (atOnce: number, codeOf: (crowd: Crowd) => string, timeoutMs = 60_000) =>
  (crowd: Crowd): Promise<RunEnd[]> => {
    const code = codeOf(crowd);
    return together(crowd, atOnce, (account) => crowd.caller.run(account, code, { timeoutMs, signal: crowd.over }));
  };

const fetching = (path: string) => (crowd: Crowd) =>
  `async function main() { const one = () => fetch("http://${crowd.servers}${path}").catch(() => 0);
    await Promise.all(Array.from({ length: 50 }, one)); }`;

/** One character beyond Latin-1: V8 stores the whole text with two bytes for each. */
const largeCode = (body: string): Buffer =>
  Buffer.from(`${" ".repeat(15 * MIB)}\u{1f600}\\nasync function main() { ${body} }"}`);

const largeSources = (atOnce: number, body: string, timeoutMs: number) => {
  const code = largeCode(body);
  return (crowd: Crowd): Promise<RunEnd[]> =>
    together(crowd, atOnce, (account) => {
      const head = Buffer.from(`{"js_params":{},"timeout_ms":${timeoutMs},"code":"// ${randomUUID()}`);
      const options = { length: head.length + code.length, signal: crowd.over };
      return crowd.caller.send(account, "/run_action", Readable.from([head, code]), options);
    });
};

const SLEEP = "async function main() { await new Promise((resolve) => setTimeout(resolve, 58_000)); }";
/** Their accounts are known for short runs then. */
async function sleepAfterShort(crowd: Crowd): Promise<RunEnd[]> {
  const { caller, accounts } = crowd;
  const shortRuns = accounts.map(async (account) => {
    for (let n = 0; n < 3; n++) await caller.run(account, HELLO, { timeoutMs: 60_000 });
  });
  await Promise.all(shortRuns);
  return runs(140, () => SLEEP)(crowd);
}

const UNKNOWN_FIELDS = `async function main() {
  const args = {};
  for (let i = 0; i < 90_000; i++) args["k" + i] = 0;
  const one = () => Actions.getPublicKey(args).catch(() => 0);
  for (;;) await Promise.all(Array.from({ length: 20 }, one));
}`;
const LARGE_OPS = `async function main({ pkpId }) {
  const message = "m".repeat(1_000_000);
  await Promise.allSettled(Array.from({ length: 100 }, () => Actions.Encrypt({ pkpId, message })));
}`;
const MANY_IMPORTS = Array.from({ length: 370_000 }, (_, i) => `import"#${i.toString(36)}";`).join("");

/** Sends a body's beginning, or as much as the connection takes. */
type SendBody = (socket: Socket) => void;

/** At least 80 bodies at once, from one address for each account, without a credential. */
async function bodies({ accounts, baseUrl, over }: Crowd, framing: string, send: SendBody): Promise<RunEnd[]> {
  const { port } = new URL(baseUrl);
  const hold = (address: string): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect({ port: Number(port), host: "127.0.0.1" });
      const leave = (): void => void socket.destroy();
      over.addEventListener("abort", leave, { once: true });
      socket.on("error", () => undefined);
      socket.on("data", leave);
      socket.once("close", () => (over.removeEventListener("abort", leave), resolve()));
      socket.write(
        `POST /core/v1/get_lit_action_ipfs_id HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n` +
          `x-forwarded-for: ${address}\r\n${framing}\r\n\r\n`,
      );
      send(socket);
    });
  await Promise.all(
    Array.from({ length: Math.max(80, accounts.length) }, async (_, i) => {
      while (!over.aborted) {
        await hold(accounts[i % accounts.length]?.address ?? "");
        await sleep(200);
      }
    }),
  );
  return [];
}

const HALF = Buffer.alloc(8 * MIB, " ");
const unfinishedBodies = (crowd: Crowd): Promise<RunEnd[]> =>
  bodies(crowd, `content-length: ${17 * MIB}`, (socket) => void socket.write(HALF));

const CHUNKS = Buffer.from("1\r\n \r\n".repeat(8_000));
const bodiesInChunksOfOneByte = (crowd: Crowd): Promise<RunEnd[]> =>
  bodies(crowd, "transfer-encoding: chunked", (socket) => {
    const write = (): void => {
      while (!socket.destroyed && socket.write(CHUNKS));
    };
    socket.on("drain", write);
    write();
  });

/** One request for an account, repeated 39 times from each address. */
async function repeatedSignUps({ caller, accounts, over }: Crowd): Promise<RunEnd[]> {
  const ends = accounts.map(async (account, i) => {
    const body = JSON.stringify({ account_name: "again", account_description: "" });
    const stranger = { ...account, apiKey: undefined, address: `11.${i}.${accounts.length}.9` };
    const idempotencyKey = randomUUID();
    const answers: RunEnd[] = [];
    for (let n = 0; n < 39 && !over.aborted; n++)
      answers.push(await caller.send(stranger, "/new_account", body, { idempotencyKey }));
    return answers;
  });
  return (await Promise.all(ends)).flat();
}

const update = (crowd: Crowd, account: AbuseAccount, index: number): Promise<RunEnd> => {
  const body = JSON.stringify({ group_name: `g${index}`, group_description: "" });
  return crowd.caller.send(account, "/add_group", body, { signal: crowd.over });
};

export const CROWD_ATTACKS: readonly CrowdAttack[] = [
  {
    name: "answers that stop half-way while others wait for their memory",
    isPaid: true,
    leastSeconds: 40,
    attack: runs(4, fetching("/slow"), 35_000),
  },
  { name: "140 runs that sleep", isPaid: true, attack: runs(140, () => SLEEP) },
  {
    name: "140 runs that sleep, after many short ones",
    isPaid: true,
    // So many short runs take a while.
    leastSeconds: 40,
    attack: sleepAfterShort,
  },
  {
    name: "30 sources of 16 MiB, all different",
    isPaid: true,
    attack: largeSources(30, "for (;;);", 5_000),
  },
  {
    name: "sources of 16 MiB whose runs sleep",
    isPaid: true,
    leastSeconds: 40,
    attack: largeSources(30, "await new Promise((end) => setTimeout(end, 58_000));", 60_000),
  },
  {
    name: "loops without an end in every place",
    isPaid: true,
    attack: runs(18, () => "async function main() { for (;;); }"),
  },
  { name: "every open fetch, to a server that never answers", isPaid: true, attack: runs(8, fetching("/silent")) },
  { name: "ops with 90,000 unknown arguments", isPaid: true, attack: runs(8, () => UNKNOWN_FIELDS, 10_000) },
  { name: "a hundred ops of a megabyte at once", isPaid: true, attack: runs(8, () => LARGE_OPS, 10_000) },
  { name: "answers in pieces of one byte", isPaid: true, attack: runs(8, fetching("/pieces"), 30_000) },
  { name: "370,000 imports in one module", isPaid: true, attack: runs(8, () => MANY_IMPORTS, 10_000) },
  {
    name: "code that does not parse",
    isPaid: true,
    // In two minutes.
    freeRuns: 120,
    attack: runs(18, () => "async function main( {"),
  },
  { name: "80 bodies of 17 MiB that are never finished", isPaid: false, attack: unfinishedBodies },
  { name: "80 bodies in chunks of one byte", isPaid: false, attack: bodiesInChunksOfOneByte },
  { name: "sign-ups repeated with one idempotency key", isPaid: false, attack: repeatedSignUps },
  { name: "as many writes as the queue takes", isPaid: true, attack: (crowd) => writes(crowd) },
];

/** No account may have more than 64 waiting. */
const writes = (crowd: Crowd): Promise<RunEnd[]> =>
  together(crowd, Math.min(2_100, 62 * crowd.accounts.length), (account, index) => update(crowd, account, index));
