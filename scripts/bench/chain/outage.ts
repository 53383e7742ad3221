/** The node becomes unreachable under load: how soon writes land again, and whether each had exactly one effect. */
import { connect, createServer, type Server, type Socket } from "node:net";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { JsonRpcProvider } from "ethers";
import { AccountManager__factory } from "../../../typechain-types";
import { freePort } from "../../dev/ports";
import { BenchClient, benchStack, type BenchAccount } from "../client";

export interface OutageResult {
  readonly outageMs: number;
  readonly accounts: number;
  readonly recoveryMs: number;
  readonly asked: number;
  readonly landed: number;
  /** Answered 503, nothing charged. */
  readonly refused: number;
  /** Accounts whose groups are not exactly the writes that landed. */
  readonly wrong: number;
}

const OUTAGE_MS = 6_000;
const ACCOUNTS = 32;

/** A TCP proxy whose connections can be cut. */
class TcpProxy {
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #target = 0;

  constructor(readonly port: number) {}

  async connect(target: number = this.#target): Promise<void> {
    this.#target = target;
    this.#server = createServer((inward) => {
      const outward = connect(target, "127.0.0.1");
      for (const [socket, other] of [
        [inward, outward],
        [outward, inward],
      ] as const) {
        this.#sockets.add(socket);
        socket.on("error", () => other.destroy());
        socket.on("close", () => {
          this.#sockets.delete(socket);
          other.destroy();
        });
        socket.pipe(other);
      }
    });
    this.#server.listen(this.port, "127.0.0.1");
    await once(this.#server, "listening");
  }

  cut(): void {
    this.#server?.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

interface Tally {
  asked: number;
  landed: number;
  refused: number;
  readonly landedAt: number[];
}

export async function outage(say: (line: string) => void): Promise<OutageResult> {
  const proxy = new TcpProxy(await freePort());
  let connected: Promise<void> | undefined;
  const stack = await benchStack({
    servicesRpcUrl: (rpcUrl) => {
      connected = proxy.connect(Number(new URL(rpcUrl).port));
      return `http://127.0.0.1:${proxy.port}`;
    },
  });
  await connected;
  const client = new BenchClient(stack.baseUrl);
  const provider = new JsonRpcProvider(stack.rpcUrl, undefined, { staticNetwork: true, cacheTimeout: -1 });
  try {
    const accounts = await Promise.all(Array.from({ length: ACCOUNTS }, () => client.account()));
    const tallies = accounts.map((): Tally => ({ asked: 0, landed: 0, refused: 0, landedAt: [] }));
    let stopped = false;
    const load = accounts.map((account, index) => writeUntil(client, account, tallies[index] as Tally, () => stopped));
    await sleep(3_000);
    proxy.cut();
    await sleep(OUTAGE_MS);
    await proxy.connect();
    const backAt = Date.now();
    await sleep(12_000);
    stopped = true;
    await Promise.all(load);
    const firstLanded = Math.min(...tallies.flatMap(({ landedAt }) => landedAt.filter((at) => at > backAt)));
    const contract = AccountManager__factory.connect(stack.contractAddress, provider);
    const counts = await Promise.all(
      accounts.map(async ({ id }) => Number((await contract.getAccount(id)).groupCount)),
    );
    const wrong = counts.filter((count, index) => count !== tallies[index]?.landed).length;
    const sum = (name: "asked" | "landed" | "refused"): number =>
      tallies.reduce((total, tally) => total + tally[name], 0);
    const result = {
      outageMs: OUTAGE_MS,
      accounts: ACCOUNTS,
      recoveryMs: firstLanded - backAt,
      asked: sum("asked"),
      landed: sum("landed"),
      refused: sum("refused"),
      wrong,
    };
    say(`after the outage: first write after ${result.recoveryMs} ms, wrong ${wrong}`);
    return result;
  } finally {
    provider.destroy();
    await client.close();
    await stack.stop();
    proxy.cut();
  }
}

/** A 504 is followed to its outcome: its write counts as landed when its submission is confirmed. */
async function writeUntil(
  client: BenchClient,
  { key }: BenchAccount,
  tally: Tally,
  stopped: () => boolean,
): Promise<void> {
  while (!stopped()) {
    tally.asked += 1;
    const { status, answer } = await client.post("add_group", { group_name: "group", group_description: "" }, key);
    const landed =
      status === 200 || (status === 504 && (await finalOutcome(client, key, String(answer.submission_id))));
    if (landed) {
      tally.landed += 1;
      tally.landedAt.push(Date.now());
    } else {
      tally.refused += 1;
      await sleep(100);
    }
  }
}

async function finalOutcome(client: BenchClient, key: string, submissionId: string): Promise<boolean> {
  for (;;) {
    const { state } = (await client.get(`submissions/${submissionId}`, key)) as { state?: string };
    if (state === "mined" || state === "confirmed") return true;
    if (state === undefined || state === "failed" || state === "expired") return false;
    await sleep(200);
  }
}
