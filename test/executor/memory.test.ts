/**
 * The keyholder retains nothing of a run, however it ends: heap snapshots before and after many runs, compared by
 * class.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { count } from "../support/counts";
import { registerPayers, TestAccount, TestChain, TestExecutor } from "../support/executor";
import { grownClasses, heapByClass, heapOptions } from "../support/heap";

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

  const question = (code: string): object => ({
    ...{ credential: { type: "key", key: account.key }, code, params: JSON.stringify({ pkpId: pkp }) },
  });
  const ask = (code: string, more: object = {}, signal?: AbortSignal): Promise<string> =>
    send(JSON.stringify({ ...question(code), ...more }), signal);
  const send = (body: string, signal?: AbortSignal): Promise<string> =>
    executor.ask("run", body, signal).then(
      ({ answer, refusal }) => answer?.error?.code ?? refusal?.code ?? "served",
      () => "disconnected",
    );
  const kinds: Record<string, () => Promise<string>> = {
    served: () => ask(HELLO, { limitMs: 10_000 }),
    action_not_permitted: () => ask(UNLISTED, { limitMs: 10_000 }),
    timed_out: () => ask(WAITS, { limitMs: 30 }),
    disconnected: () => ask(WAITS, { limitMs: 10_000 }, AbortSignal.timeout(60)),
    // The relayer sends the block of the last write in a second part of its call; here none comes.
    malformed_json: () => ask(HELLO),
  };
  // And the paid duration in a third.
  const unpaid = (): Promise<string> => send(`${JSON.stringify(question(HELLO))}\n{"notBefore":0}`);
  async function round(times: number): Promise<void> {
    for (let i = 0; i < times; i++)
      for (const [ends, run] of [...Object.entries(kinds), ["disconnected", unpaid] as const])
        expect(await run()).to.equal(ends);
  }

  it("would be reported for one retained listener per run", async () => {
    const leaky = `class RunOps {}
      const { signal } = new AbortController();
      process.on("message", (runs) => {
        for (let i = 0; i < runs; i++) {
          const ops = new RunOps();
          signal.addEventListener("abort", function onAbort() {
            return ops;
          });
        }
        globalThis.kept = signal;
        process.send("ran");
      });`;
    const leaking = spawn(process.execPath, [...heapOptions(folder).split(" "), "-e", leaky], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    const run = (runs: number) => (leaking.send(runs), once(leaking, "message"));
    try {
      await run(10);
      const before = await heapByClass(leaking.pid ?? 0, folder);
      await run(50);
      const grown = grownClasses(before, await heapByClass(leaking.pid ?? 0, folder), 50).map(({ name }) => name);
      expect(grown).to.include.members(["object RunOps", "closure onAbort"]);
    } finally {
      leaking.kill("SIGKILL");
    }
  });

  it("does not grow with runs that are served, refused, unpaid, timed out or aborted", async () => {
    const times = count(50, 1_000);
    const pid = executor.process.child.pid ?? 0;
    await round(10);
    const before = await heapByClass(pid, folder);
    await round(times);
    const after = await heapByClass(pid, folder);
    expect(grownClasses(before, after, times), `classes that grew with ${times} runs of each kind`).to.deep.equal([]);
  });
});
