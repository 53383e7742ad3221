/** Nothing that belongs to one run outlives it in the keyholder, however the run ends: heap snapshots before and after many of them, compared by class. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { count } from "../support/counts";
import { registerPayers, TestAccount, TestChain, TestExecutor } from "../support/executor";
import { heapByClass, heapOptions } from "../support/heap";

const HELLO = `async function main({ pkpId }) { return await Actions.signMessage({ pkpId, message: "hello" }); }`;
const WAITS = `async function main() { await new Promise((resolve) => setTimeout(resolve, 5000)); }`;
const UNLISTED = `async function main() { return "in no group"; }`;

describe("the keyholder's memory over many runs", function () {
  this.timeout(count(120_000, 1_200_000));
  const folder = mkdtempSync(join(tmpdir(), "keywright-heap-"));
  let chain: TestChain;
  let executor: TestExecutor;
  let account: TestAccount;
  let pkp: string;

  before(async () => {
    chain = await TestChain.start();
    executor = await TestExecutor.start(chain, { NODE_OPTIONS: heapOptions(folder), LOG_LEVEL: "warn" });
    await registerPayers(chain, executor);
    account = await TestAccount.create(chain, executor);
    pkp = await account.mintPkp();
    await account.addGroup([HELLO, WAITS], [pkp]);
  });
  after(async () => {
    await executor.stop();
    await chain.stop();
    rmSync(folder, { recursive: true });
  });

  const ask = (code: string, more: object = {}, signal?: AbortSignal): Promise<string> =>
    executor.ask("run", { credential: { type: "key", key: account.key }, code, params: JSON.stringify({ pkpId: pkp }), ...more }, signal).then(
      ({ answer, refusal }) => answer?.error?.code ?? refusal?.code ?? "served",
      () => "hung up",
    );
  const kinds: Record<string, () => Promise<string>> = {
    served: () => ask(HELLO, { limitMs: 10_000 }),
    action_not_permitted: () => ask(UNLISTED, { limitMs: 10_000 }),
    // The relayer says for how long a run is paid for in a second part of its call; here none comes.
    malformed_json: () => ask(HELLO),
    timed_out: () => ask(WAITS, { limitMs: 30 }),
    "hung up": () => ask(WAITS, { limitMs: 10_000 }, AbortSignal.timeout(60)),
  };
  async function round(times: number): Promise<void> {
    for (let i = 0; i < times; i++) for (const [ends, run] of Object.entries(kinds)) expect(await run()).to.equal(ends);
  }

  it("does not grow with runs that are served, refused, not paid for, timed out or aborted", async () => {
    const times = count(50, 1_000);
    const pid = executor.process.child.pid ?? 0;
    await round(10);
    const before = await heapByClass(pid, folder);
    await round(times);
    const after = await heapByClass(pid, folder);
    const grown = [...after].map(([name, left]) => ({ name, by: left - (before.get(name) ?? 0) })).filter(({ by }) => by >= times * 0.7);
    expect(grown, `classes that grew with ${times} runs of each kind`).to.deep.equal([]);
  });
});
