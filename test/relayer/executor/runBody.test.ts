/** The body of a run's request: large code is made into text only as fast as the executor reads it. */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { MIB } from "../../../protocol/limits";
import { RunBody, type RunQuestion } from "../../../relayer/executor/runBody";

const question = (code: string): RunQuestion => ({
  credential: { type: "key", key: "k" },
  params: "{}",
  notBefore: Promise.resolve(7),
  code,
});
const NOT_BEFORE = '{"notBefore":7}';

describe("the body of a run", () => {
  for (const length of [10, 300 * 1_024, 4 * MIB])
    it(`is the question with ${length} characters of code, and the other parts in order`, async () => {
      const { notBefore, ...asked } = question("\n😀".repeat(length / 2).slice(1));
      for (const late of [false, true]) {
        const body = new RunBody({ ...asked, notBefore: late ? sleep(50).then(() => notBefore) : notBefore });
        const received = text(body.stream);
        if (!late) await sleep(50);
        body.end('{"limitMs":1}');
        const [first, ...others] = (await received).split("\n");
        expect(JSON.parse(first ?? "")).to.deep.equal(asked);
        expect(others).to.deep.equal([NOT_BEFORE, '{"limitMs":1}']);
      }
    });

  it("has the block of the last write in the chunk of a small question, if that is known at once", async () => {
    const body = new RunBody(question("x"));
    await Promise.resolve();
    const [chunk] = await once(body.stream, "data");
    expect(String(chunk).split("\n")).to.have.length(3).and.to.include(NOT_BEFORE);
  });

  it("is sent without the block of the last write while that is not known, and is cut where it never is", async () => {
    for (const length of [10, 300 * 1_024]) {
      const { promise, reject } = Promise.withResolvers<number>();
      const body = new RunBody({ ...question("x".repeat(length)), notBefore: promise });
      const received = text(body.stream);
      while (!body.stream.readableDidRead) await sleep(5);
      body.end('{"limitMs":1}');
      await sleep(50);
      reject(new Error("away"));
      expect((await received).split("\n").slice(1), `${length}`).to.deep.equal([""]);
    }
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
    body.cut();
    expect((await text(body.stream)).length).to.be.within(1, MIB);
  });
});
