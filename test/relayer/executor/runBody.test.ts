/** The body of a run's request: large code is made into text only as fast as the executor reads it. */
import { setTimeout as sleep } from "node:timers/promises";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { MIB } from "../../../protocol/limits";
import { RunBody, type RunQuestion } from "../../../relayer/executor/runBody";

const question = (code: string): RunQuestion => ({
  credential: { type: "key", key: "k" },
  params: "{}",
  notBefore: 0,
  code,
});

describe("the body of a run", () => {
  for (const length of [10, 300 * 1_024, 4 * MIB])
    it(`is the question with ${length} characters of code, and the second part`, async () => {
      const asked = question("\n😀".repeat(length / 2).slice(1));
      const body = new RunBody(asked);
      const received = text(body.stream);
      await sleep(50);
      body.end('{"limitMs":1}');
      const [first, second] = (await received).split("\n");
      expect(JSON.parse(first ?? "")).to.deep.equal(asked);
      expect(second).to.equal('{"limitMs":1}');
    });

  it("holds a slice of large code that the executor does not read yet", async () => {
    const body = new RunBody(question("x".repeat(16 * MIB)));
    await sleep(100);
    expect(body.stream.readableLength).to.be.within(1, MIB);
    body.stream.destroy();
  });

  it("ends where the run is abandoned before all of its code was read", async () => {
    const body = new RunBody(question("x".repeat(16 * MIB)));
    await sleep(20);
    body.end();
    expect((await text(body.stream)).length).to.be.within(1, MIB);
  });
});
