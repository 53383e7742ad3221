/** A hundred megabytes to encrypt at once: what is under way in the keyholder is bounded over all runs. */
import { expect } from "chai";
import { SHARED_LIMITS } from "../../../protocol/limits";
import { OP_MEMORY_PER_CHAR } from "../../../executor/sandbox/fetches";
import { run } from "../../support/sandbox";

const CHARS = 1_000_000;
const OPS = 60;

describe("attack: megabytes as the arguments of every op", () => {
  it("are served as there is memory for them", async () => {
    const under = { now: 0, most: 0, served: 0 };
    const outcome = await run(
      `async function main() {
        const message = "m".repeat(${CHARS});
        await Promise.all(Array.from({ length: ${OPS} }, () => Actions.Encrypt({ pkpId: "0x", message })));
        return "done";
      }`,
      {
        limits: { wallMs: 50_000 },
        ops: async () => {
          under.most = Math.max(under.most, ++under.now);
          await new Promise((resolve) => setTimeout(resolve, 200));
          under.now--;
          under.served++;
          return { ok: true, value: `"ciphertext"` };
        },
      },
    );
    expect(outcome.error).to.equal(undefined);
    expect(under.most).to.be.within(2, SHARED_LIMITS.opMemoryBytes / (CHARS * OP_MEMORY_PER_CHAR));
    expect(under.served).to.equal(OPS);
  }).timeout(60_000);

  it("are all answered where each answer is as long: a child that waits to send reads meanwhile", async () => {
    const answer = JSON.stringify("c".repeat(CHARS));
    const outcome = await run(
      `async function main() {
        const message = "m".repeat(${CHARS});
        const encrypt = () => Actions.Encrypt({ pkpId: "0x", message });
        const answers = await Promise.all(Array.from({ length: ${OPS} }, encrypt));
        return answers.every((answer) => answer.length === ${CHARS});
      }`,
      { limits: { wallMs: 20_000 }, ops: () => ({ ok: true, value: answer }) },
    );
    expect(outcome.error).to.equal(undefined);
    expect(outcome.response).to.equal("true");
  }).timeout(30_000);

  it("end a run in order where they are more than allowed, also while answers wait to be read", async () => {
    const outcome = await run(
      `async function main() {
        const message = "m".repeat(${CHARS});
        await Promise.all(Array.from({ length: ${OPS} }, () => Actions.Encrypt({ pkpId: "0x", message })));
      }`,
      {
        limits: { wallMs: 20_000, keyOps: OPS - 1 },
        ops: () => ({ ok: true, value: JSON.stringify("c".repeat(CHARS)) }),
      },
    );
    expect(outcome.error?.code).to.equal("limit_exceeded");
    expect(outcome.durationMs).to.be.below(10_000);
  }).timeout(30_000);
});
