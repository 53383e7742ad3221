/** Large codes over HTTP whose runs sleep: they keep no memory, in the relayer or the keyholder, from others' codes. */
import { expect } from "chai";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../../client";
import { MIB } from "../../protocol/limits";
import { callExecutor } from "../../scripts/dev/payers";
import { expectInTime, TooLate } from "../support/inTime";
import { makeAccount } from "../support/journey";
import { useStack } from "../support/stack";

const ANY_ACTION = `0x${"0".repeat(64)}`;
/** As the longest code, with room for what a test adds. */
const LARGE = 16 * MIB - 1_024;
/** More accounts than large codes had room, in the relayer and in the keyholder, as long as their runs lasted. */
const SLEEPING = 9;

describe("runs of many megabytes of code", function () {
  this.timeout(300_000);
  const stack = useStack();

  async function runner(): Promise<Client> {
    const { client } = await makeAccount(stack().baseUrl);
    await client.addGroup({ group_name: "all", group_description: "", cid_hashes_permitted: [ANY_ACTION] });
    return client;
  }

  /** How long it takes in milliseconds. */
  async function runLarge(client: Client, bytes: number): Promise<number> {
    const startedAt = performance.now();
    const { response } = await client.runAction({ code: `async function main() { return 7; }`.padEnd(bytes, " ") });
    expect(response).to.equal(7);
    return performance.now() - startedAt;
  }

  async function busyChildren(): Promise<number> {
    const { pool } = await callExecutor(stack().executorSocket, "info", {});
    return pool.busy;
  }

  it("that sleep keep nobody's large code waiting", async () => {
    const attackers = await Promise.all(Array.from({ length: SLEEPING }, runner));
    const honest = await runner();
    const quietMs = await runLarge(honest, LARGE);
    const [stop, ended] = [new AbortController(), [] as string[]];
    const attack = attackers.map((client, i) => {
      const code = `async function main() { await new Promise((end) => setTimeout(end, 50_000)); } // ${i}`;
      // A busy machine takes its time until the last one sleeps.
      const options = { signal: stop.signal, timeoutMs: 240_000 };
      return client.runAction({ code: code.padEnd(LARGE, " "), timeout_ms: 55_000 }, options).then(
        ({ error }) => void ended.push(error?.code ?? "served"),
        (error: unknown) => void ended.push(String(error)),
      );
    });
    while (ended.length === 0 && (await busyChildren()) < SLEEPING) await sleep(50);
    // A busy machine may end them before they sleep.
    if (ended.length > 0) throw new TooLate(`they do not sleep: ${ended.join(", ")}`);
    for (const bytes of [100 * 1_024, LARGE])
      expectInTime(await runLarge(honest, bytes), 2 * quietMs + 3_000, `${bytes} bytes of code`);
    expect(ended, "they sleep on").to.deep.equal([]);
    stop.abort();
    await Promise.all(attack);
  });
});
