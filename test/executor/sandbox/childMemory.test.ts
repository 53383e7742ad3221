/** A child retains nothing of a run, however it ends: heap snapshots before and after many runs, compared by class. */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { expect } from "chai";
import { readFrames, writeFrame } from "../../../executor/frames";
import type { FromChild, ToChild } from "../../../executor/sandbox/messages";
import { RUN_LIMITS } from "../../../protocol/limits";
import { count } from "../../support/counts";
import { heapOptions, leakedClasses } from "../../support/heap";

const PROGRAM = join(__dirname, "../../../dist/executor/sandbox/child.js");
const RUNS_AS_ITSELF = "0";

const KINDS: Record<string, { code: string; wallMs?: number; ends: string }> = {
  served: { code: `async function main({ name }) { console.log("hello"); return name; }`, ends: "none" },
  "served after an op": {
    code: `async function main() { return Actions.signMessage({ pkpId: "a", message: "m" }); }`,
    ends: "none",
  },
  "served by a module": {
    code: `export default async function () { return new URL("https://a.example").host; }`,
    ends: "none",
  },
  "with a timer left": { code: `async function main() { setTimeout(() => {}, 60000); return 1; }`, ends: "none" },
  "with an op left": {
    code: `async function main() { Actions.signMessage({ pkpId: "a", message: "m" }); return 1; }`,
    ends: "none",
  },
  thrown: { code: `async function main() { throw new Error("no"); }`, ends: "threw" },
  invalid: { code: `async function main( {`, ends: "invalid_code" },
  "timed out": { code: `async function main() { for (;;); }`, wallMs: 20, ends: "timed_out" },
};

describe("a child's memory over many runs", function () {
  this.timeout(count(120_000, 1_200_000));
  const folder = mkdtempSync(join(tmpdir(), "keywright-child-heap-"));
  let child: ChildProcess;
  let channel: Duplex;
  let onMessage: (message: FromChild) => void = () => undefined;
  let runs = 0;

  before(async () => {
    const args = [...heapOptions(folder).split(" "), "--no-node-snapshot", PROGRAM, "64", RUNS_AS_ITSELF];
    child = spawn(process.execPath, args, { stdio: ["ignore", "inherit", "inherit", "pipe"] });
    channel = child.stdio[3] as Duplex;
    const ready = new Promise<void>((resolve) => (onMessage = ({ type }) => type === "ready" && resolve()));
    readFrames(
      channel,
      ({ header }) => onMessage(header as FromChild),
      (reason) => expect.fail(reason),
    );
    await ready;
  });
  after(() => {
    channel.destroy();
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true });
  });

  const say = (message: ToChild, payload?: Buffer): void => writeFrame(channel, message, payload);

  /** How the run ends: the code of its error, or "none". Ops are answered with an empty text. */
  function endOf({ code, wallMs = 10_000 }: { code: string; wallMs?: number }): Promise<string> {
    const run = runs++;
    const ended = new Promise<string>((resolve) => {
      onMessage = (message) => {
        if (message.type === "op") say({ type: "answer", run, call: message.call, ok: true, value: `""` });
        if (message.type === "end") resolve(message.error?.code ?? "none");
      };
    });
    const limits = { ...RUN_LIMITS, heapMiB: 64, wallMs };
    say({ type: "run", run, params: `{"name":"n"}`, limits }, Buffer.from(code));
    return ended;
  }

  async function round(times: number): Promise<void> {
    for (let i = 0; i < times; i++)
      for (const [what, kind] of Object.entries(KINDS)) expect(await endOf(kind), what).to.equal(kind.ends);
  }

  it("does not grow with runs that are served, leave work behind, throw, do not parse or time out", async () => {
    const times = count(50, 1_000);
    const pid = child.pid ?? 0;
    await round(20);
    expect(await leakedClasses({ pid, folder }, () => round(times), times)).to.deep.equal([]);
  });
});
