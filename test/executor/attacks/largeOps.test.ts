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
});
