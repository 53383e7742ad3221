/**
 * Many hostile actions over HTTP while another account's honest runs are timed: typed errors for the former, no delay
 * for the latter.
 */
import { expect } from "chai";
import type { Client } from "../../client";
import { count } from "../support/counts";
import { TooLate } from "../support/inTime";
import { makeAccount } from "../support/journey";
import { useStack } from "../support/stack";

const ANY_ACTION = `0x${"0".repeat(64)}`;
const TIMEOUT_MS = 400;

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
});
