/**
 * Many hostile actions over HTTP while another account's honest runs are timed: typed errors for the former, no delay
 * for the latter.
 */
import { expect } from "chai";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../../client";
import { MIB } from "../../protocol/limits";
import { callExecutor } from "../../scripts/dev/payers";
import { count } from "../support/counts";
import { expectInTime, TooLate } from "../support/inTime";
import { makeAccount } from "../support/journey";
import { useStack } from "../support/stack";

const ANY_ACTION = `0x${"0".repeat(64)}`;
const TIMEOUT_MS = 400;
/** As the longest code, with room for what a test adds. */
const LARGE = 16 * MIB - 1_024;
/** More accounts than large codes had room, in the relayer and in the keyholder, as long as their runs lasted. */
const SLEEPING = 9;

const HOSTILE: Record<string, { code: string; ends: string[] }> = {
  "an endless loop": { code: `console.log("before"); for (;;);`, ends: ["timed_out"] },
  "endless microtasks": {
    code: `console.log("before"); (function next() { Promise.resolve().then(next); })();`,
    ends: ["timed_out"],
  },
  "a promise that never settles": {
    code: `async function main() { console.log("before"); await new Promise(() => {}); }`,
    ends: ["timed_out"],
  },
  "an engine killer": {
    code: `console.log("before"); "x".repeat(2 ** 28).split("");`,
    ends: ["sandbox_crashed", "timed_out"],
  },
  "a memory flood": {
    code: `console.log("before"); const kept = []; for (;;) kept.push(new Array(1e5).fill(1.5));`,
    ends: ["out_of_memory", "timed_out"],
  },
  "a flood of logs": {
    code: `console.log("before"); for (;;) console.log("x".repeat(1000));`,
    ends: ["logs_too_large"],
  },
  "a huge response": {
    code: `async function main() { console.log("before"); return "x".repeat(5e8); }`,
    ends: ["response_too_large"],
  },
  "a look inside": {
    code: `async function main() { console.log("before"); await fetch("http://169.254.169.254/"); }`,
    ends: ["threw"],
  },
  "code from text": { code: `console.log("before"); (() => {}).constructor("return process")();`, ends: ["threw"] },
};

describe("hostile actions over HTTP", function () {
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

  it("end with their own codes and their logs, charged to the attacker, while honest runs continue", async () => {
    const [attacker, honest] = await Promise.all([runner(), runner()]);
    const times: number[] = [];
    let isOver = false;
    const watching = (async () => {
      while (!isOver) {
        const startedAt = Date.now();
        const { response } = await honest.runAction({
          code: `async function main({ n }) { return n + 1; }`,
          js_params: { n: 1 },
        });
        expect(response).to.equal(2);
        times.push(Date.now() - startedAt);
      }
    })();
    for (let round = 0; round < count(1, 10); round++) {
      for (const [name, { code, ends }] of Object.entries(HOSTILE)) {
        const answer = await attacker.runAction({ code, timeout_ms: TIMEOUT_MS });
        expect(answer.has_error, name).to.equal(true);
        // On a busy machine a child may get no time of a core as long as the run may last.
        if (answer.error?.code === "timed_out" && answer.logs === "") throw new TooLate(`${name} had no time`);
        expect(ends, `${name}: ${JSON.stringify(answer.error)}`).to.include(answer.error?.code);
        expect(answer.response).to.equal(null);
        expect(answer.logs.startsWith("before\n"), name).to.equal(true);
        expect(answer.usage.cost_cents, name).to.equal(1);
      }
    }
    isOver = true;
    await watching;
    const median = times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
    expect(times.length).to.be.above(5);
    expect(median, "the median honest run in milliseconds").to.be.below(1_000);
  });

  it("of many megabytes that sleep keep nobody's large code waiting", async () => {
    const attackers = await Promise.all(Array.from({ length: SLEEPING }, runner));
    const honest = await runner();
    const quietMs = await runLarge(honest, LARGE);
    const attack = attackers.map((client, i) => {
      const code = `async function main() { await new Promise((end) => setTimeout(end, 20_000)); } // ${i}`;
      // A busy machine takes its time until the last one sleeps.
      return client.runAction({ code: code.padEnd(LARGE, " "), timeout_ms: 25_000 }, { timeoutMs: 240_000 });
    });
    while ((await busyChildren()) < SLEEPING) await sleep(50);
    for (const bytes of [100 * 1_024, LARGE])
      expectInTime(await runLarge(honest, bytes), 2 * quietMs + 3_000, `${bytes} bytes of code`);
    for (const { has_error: failed } of await Promise.all(attack)) expect(failed).to.equal(false);
  });
});
