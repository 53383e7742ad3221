/** Every limit of the table, at N and at N + 1. */
import { expect } from "chai";
import { createHash } from "node:crypto";
import { FetchFailed, type Fetcher } from "../../../executor/fetcher/types";
import { createSandboxPool } from "../../../executor/sandbox/pool";
import type { RunLimits, RunOutcome, SandboxPool } from "../../../executor/sandbox/types";
import { MIB, RUN_LIMITS } from "../../../protocol/limits";
import { expectInTime, itInTime } from "../../support/inTime";
import { longestHold } from "../../support/ops";
import { jobOf, noFetcher, run, silent, TEST_LIMITS, type RunOptions } from "../../support/sandbox";

const MODULE = Buffer.from("export default 1;");
const integrity = (source: Buffer) => `sha384-${createHash("sha384").update(source).digest("base64")}`;

/** Answers every fetch with as many bytes as its path says, and serves one module. */
const fetcher: Fetcher = {
  ...noFetcher,
  fetchGuest: async ({ url, maxBytes }) => {
    const size = Number(new URL(url).pathname.slice(1));
    if (size > maxBytes) throw new FetchFailed("too_large", `the answer is larger than ${maxBytes} bytes`);
    return {
      response: { url, redirected: false, status: 200, statusText: "OK", headers: [] },
      body: Buffer.alloc(size, "a"),
    };
  },
  fetchModule: async () => MODULE,
};

describe("limits of a run", function () {
  this.timeout(30_000);
  let pool: SandboxPool;
  before(async () => {
    pool = await createSandboxPool({ limits: RUN_LIMITS, size: 2, logger: silent, fetcher });
  });
  after(() => pool.close(0));

  const here = (code: string, options?: RunOptions): Promise<RunOutcome> => pool.run(jobOf(code, options));
  const passes = (outcome: RunOutcome) =>
    expect(outcome.error, JSON.stringify(outcome).slice(0, 300)).to.equal(undefined);
  const fails = (outcome: RunOutcome, code: string, message: string | RegExp) => {
    expect(outcome.error?.code, JSON.stringify(outcome).slice(0, 300)).to.equal(code);
    expect(outcome.error?.message).to.match(new RegExp(message));
    expect(outcome.response).to.equal("null");
  };

  it("wallMs: a run within it passes, one beyond it is timed_out, both within half a second of it", async () => {
    const sleep = (ms: number) =>
      `async function main() { await new Promise((resolve) => setTimeout(resolve, ${ms})); }`;
    passes(await here(sleep(200), { limits: { wallMs: 700 } }));
    const late = await here(sleep(5_000), { limits: { wallMs: 700 } });
    fails(late, "timed_out", "longer than its time limit");
    // Without what it waited for a core at its start.
    expect(late.durationMs).to.be.within(400, 1_200);
  });

  it("heapMiB: a heap within it passes, a larger one is out_of_memory", async () => {
    const fill = (mib: number) =>
      `async function main() { const kept = []; for (let i = 0; i < ${mib}; i++) kept.push(new ` +
      "Array(131072).fill(i)); return kept.length; }";
    passes(await here(fill(64)));
    fails(await here(fill(256)), "out_of_memory", "128 MiB");
    fails(await here(fill(64), { limits: { heapMiB: 32 } }), "out_of_memory", "32 MiB");
  });

  it("responseBytes: counted as UTF-8 of the JSON", async () => {
    const text = (length: number, unit = "a") =>
      `async function main() { return ${JSON.stringify(unit)}.repeat(${length}); }`;
    passes(await here(text(RUN_LIMITS.responseBytes - 2)));
    fails(await here(text(RUN_LIMITS.responseBytes - 1)), "response_too_large", "102401");
    passes(await here(text((RUN_LIMITS.responseBytes - 2) / 2, "é")));
    fails(await here(text(RUN_LIMITS.responseBytes / 2, "é")), "response_too_large", "102402");
  });

  it("logsBytes: the limit passes; one byte more ends the run and keeps the logs up to the limit", async () => {
    const log = (length: number) =>
      `console.log("a".repeat(${length / 2} - 1)); console.log("é".repeat(${length / 4} - 1) + "b");`;
    const whole = await here(log(RUN_LIMITS.logsBytes));
    passes(whole);
    expect(Buffer.byteLength(whole.logs)).to.equal(RUN_LIMITS.logsBytes);
    const over = await here(`${log(RUN_LIMITS.logsBytes)} console.log("");`);
    fails(over, "logs_too_large", "102400 bytes");
    expect(over.logs).to.equal(whole.logs);
  });

  itInTime("logsBytes: what is cut off takes no time, whatever characters it has", async () => {
    const log = `console.log("\\ufffd".repeat(33_000) + "x".repeat(10_000));`;
    let over: RunOutcome | undefined;
    const held = await longestHold(async () => void (over = await here(log)));
    expect(over?.logs).to.equal("\ufffd".repeat(33_000) + "x".repeat(RUN_LIMITS.logsBytes - 3 * 33_000));
    expectInTime(held, 300);
  });

  it("fetches", async () => {
    const code = (count: number) =>
      `async function main() { for (let i = 0; i < ${count}; i++) await fetch("http://a.test/1"); return ${count}; }`;
    passes(await here(code(RUN_LIMITS.fetches)));
    fails(await here(code(RUN_LIMITS.fetches + 1)), "limit_exceeded", `more than ${RUN_LIMITS.fetches} fetches`);
  });

  it("fetches beyond the limit end the run even when the action catches the error", async () => {
    const code = `async function main() {
      for (let i = 0; i < 60; i++)
        try {
          await fetch("http://a.test/1");
        } catch {}
      return "survived";
    }`;
    fails(await here(code), "limit_exceeded", "fetches");
  });

  itInTime("fetchBytes: bodies in both directions", async () => {
    const get = (size: number) =>
      `async function main() { return (await (await fetch("http://a.test/${size}")).text()).length; }`;
    const most = await here(get(RUN_LIMITS.fetchBytes));
    expectInTime(most.error?.code === "timed_out" ? undefined : most.durationMs, TEST_LIMITS.wallMs);
    expect(most.response, JSON.stringify(most.error)).to.equal(String(RUN_LIMITS.fetchBytes));
    fails(await here(get(RUN_LIMITS.fetchBytes + 1)), "limit_exceeded", "larger than 10485760 bytes");
    const post = (size: number) =>
      `async function main() { return (await fetch("http://a.test/1", { method: "POST", body: new ` +
      `Uint8Array(${size}) })).status; }`;
    expect((await here(post(RUN_LIMITS.fetchBytes))).response).to.equal("200");
    fails(await here(post(RUN_LIMITS.fetchBytes + 1)), "limit_exceeded", "larger than 10485760 bytes");
  });

  const answerAll = () => ({ ok: true as const, value: '"0x"' });

  it("keyOps: all kinds count together", async () => {
    const code = (count: number) =>
      `async function main() { for (let i = 0; i < ${count}; i++) await (i % 2 ? Actions.Encrypt({ pkpId: "0x1", ` +
      `message: "" }) : Actions.signMessage({ pkpId: "0x1", message: "m" })); }`;
    passes(await here(code(RUN_LIMITS.keyOps), { ops: answerAll }));
    fails(
      await here(code(RUN_LIMITS.keyOps + 1), { ops: answerAll }),
      "limit_exceeded",
      `more than ${RUN_LIMITS.keyOps} key`,
    );
  });

  it("privateKeyReads", async () => {
    const code = (count: number) =>
      `async function main() { for (let i = 0; i < ${count}; i++) await (i % 2 ? Actions.getLitActionPrivateKey() ` +
      `: Actions.getPrivateKey({ pkpId: "0x1" })); }`;
    passes(await here(code(RUN_LIMITS.privateKeyReads), { ops: answerAll }));
    fails(
      await here(code(RUN_LIMITS.privateKeyReads + 1), { ops: answerAll }),
      "limit_exceeded",
      `more than ${RUN_LIMITS.privateKeyReads} private key reads`,
    );
  });

  it("an op beyond its count is not served at all", async () => {
    let served = 0;
    const ops = () => (served++, answerAll());
    await here(
      `async function main() {
        await Promise.all(Array.from({ length: 500 }, () => Actions.getPrivateKey({ pkpId: "0x1" }).catch(() => 0)));
      }`,
      { ops },
    );
    expect(served).to.equal(RUN_LIMITS.privateKeyReads);
  });

  it("imports", async () => {
    const line = (i: number) => `import m${i} from "pkg${i}@1.0.0#${integrity(MODULE)}";`;
    const code = (count: number) =>
      [...Array.from({ length: count }, (_, i) => line(i)), "async function main() { return m0; }"].join("\n");
    expect((await here(code(RUN_LIMITS.imports))).response).to.equal("1");
    fails(await here(code(RUN_LIMITS.imports + 1)), "limit_exceeded", `more than ${RUN_LIMITS.imports} imports`);
  });

  it("arguments of an op: a mebibyte passes, more is refused before it leaves the sandbox", async () => {
    const code = (length: number) =>
      `async function main() { return Actions.signMessage({ pkpId: "0x1", message: "m".repeat(${length}) }); }`;
    const frame = JSON.stringify({ pkpId: "0x1", message: "" }).length;
    passes(await here(code(MIB - frame), { ops: answerAll }));
    fails(await here(code(MIB - frame + 1), { ops: answerAll }), "threw", "larger than 1 MiB");
  });

  it("code and parameters of the maximum sizes run", async () => {
    const padding = `//${"x".repeat(RUN_LIMITS.codeBytes - 100)}\n`;
    passes(await here(`${padding}async function main() { return 1; }`));
    const params = { text: "x".repeat(RUN_LIMITS.paramsBytes - 20) };
    expect((await here(`async function main({ text }) { return text.length; }`, { params })).response).to.equal(
      String(params.text.length),
    );
  });

  it("applies the deployment's settings, not only the defaults", async () => {
    const limits: Partial<RunLimits> = { fetches: 1, keyOps: 0, responseBytes: 10 };
    fails(
      await here(`async function main() { await fetch("http://a.test/1"); await fetch("http://a.test/1"); }`, {
        limits,
      }),
      "limit_exceeded",
      "more than 1 fetches",
    );
    fails(
      await here(`async function main() { await Actions.signMessage({ pkpId: "0x1", message: "" }); }`, {
        limits,
        ops: answerAll,
      }),
      "limit_exceeded",
      "more than 0 key",
    );
    fails(await run(`async function main() { return "12345678 "; }`, { limits }), "response_too_large", "11");
  });
});
