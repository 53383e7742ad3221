import { expect } from "chai";
import { PassThrough } from "node:stream";
import fc from "fast-check";
import { encodeFrame, readFrames, type Frame, type FrameCaps, type FrameSize } from "../../../executor/frames";
import { count, SEED } from "../../support/counts";

/** Feeds bytes in pieces and returns what was read. */
function read(bytes: Buffer, cuts: number[] = [], caps?: FrameCaps): { frames: Frame[]; violations: string[] } {
  const stream = new PassThrough();
  const frames: Frame[] = [];
  const violations: string[] = [];
  readFrames(
    stream,
    (frame) => frames.push(frame),
    (reason) => violations.push(reason),
    caps && { caps },
  );
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  for (let i = 1; i < places.length; i++) stream.emit("data", bytes.subarray(places[i - 1], places[i]));
  return { frames, violations };
}

describe("frames", () => {
  it("arrive whole and in order, whatever the chunk boundaries", () => {
    const messages = fc.array(
      fc.record({ header: fc.dictionary(fc.string(), fc.jsonValue()), payload: fc.uint8Array({ maxLength: 50 }) }),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(messages, fc.array(fc.nat(10_000), { maxLength: 20 }), (sent, cuts) => {
        const bytes = Buffer.concat(sent.map(({ header, payload }) => encodeFrame(header, Buffer.from(payload))));
        const { frames, violations } = read(bytes, cuts);
        expect(violations).to.deep.equal([]);
        expect(frames.map(({ header, payload }) => [JSON.stringify(header), [...payload]])).to.deep.equal(
          sent.map(({ header, payload }) => [JSON.stringify(header), [...payload]]),
        );
      }),
      { seed: SEED, numRuns: count(100, 3_000) },
    );
  });

  it("above the size limit close the stream before they arrive, and nothing after them is read", () => {
    const caps = { headerBytes: 10, payloadBytes: 10 };
    const prefix = ([header, payload]: readonly [number, number]) => {
      const bytes = Buffer.alloc(8);
      bytes.writeUInt32BE(header, 0);
      bytes.writeUInt32BE(payload, 4);
      return bytes;
    };
    for (const lengths of [
      [11, 0],
      [0, 11],
      [0xffffffff, 0xffffffff],
    ] as const) {
      const { frames, violations } = read(
        Buffer.concat([prefix(lengths), encodeFrame({}, Buffer.alloc(0))]),
        [8],
        caps,
      );
      expect([frames.length, violations]).to.deep.equal([0, ["a frame is too large"]]);
    }
  });

  it("that are not JSON close the stream once", () => {
    const bytes = Buffer.concat([
      encodeFrame({ fine: 1 }),
      Buffer.from([0, 0, 0, 1, 0, 0, 0, 0, 0x7b]),
      encodeFrame({ late: 1 }),
    ]);
    const { frames, violations } = read(bytes);
    expect(frames.map(({ header }) => header)).to.deep.equal([{ fine: 1 }]);
    expect(violations).to.have.lengthOf(1);
  });

  it("that are large are not read before there is room for them", async () => {
    const stream = new PassThrough({ highWaterMark: 1_024 });
    const seen: number[] = [];
    const asked: FrameSize[] = [];
    const room = Promise.withResolvers<undefined>();
    readFrames(
      stream,
      ({ payload }) => seen.push(payload.length),
      (reason) => expect.fail(reason),
      { room: (size) => (asked.push(size), room.promise), admit: async (take) => take() },
    );
    const large = encodeFrame({}, Buffer.alloc(1_000_000));
    stream.write(encodeFrame({}, Buffer.alloc(1)));
    stream.write(large.subarray(0, 100));
    await new Promise(setImmediate);
    stream.write(large.subarray(100));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect([seen, asked, stream.isPaused()]).to.deep.equal([[1], [{ header: 2, payload: 1_000_000 }], true]);
    expect(stream.readableLength, "still in the stream").to.equal(large.length - 100);
    room.resolve(undefined);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect([seen, asked.length, stream.isPaused()]).to.deep.equal([[1, 1_000_000], 1, false]);
  });

  it("with large headers are parsed one per admission, in order, pausing the stream meanwhile", async () => {
    const stream = new PassThrough();
    const seen: unknown[] = [];
    const grants: (() => void)[] = [];
    const admit = <T>(take: () => T): Promise<T> => new Promise((grant) => grants.push(() => grant(take())));
    readFrames(
      stream,
      ({ header }) => seen.push((header as { n: number }).n),
      (reason) => expect.fail(reason),
      { admit },
    );
    const large = (n: number): Buffer => encodeFrame({ n, text: "x".repeat(20_000) });
    stream.write(
      Buffer.concat([encodeFrame({ n: 1 }), large(2), encodeFrame({ n: 3 }), large(4), encodeFrame({ n: 5 })]),
    );
    await new Promise(setImmediate);
    expect([seen, grants.length, stream.isPaused()]).to.deep.equal([[1], 1, true]);
    stream.write(encodeFrame({ n: 6 }));
    grants.shift()?.();
    await new Promise(setImmediate);
    expect([seen, grants.length, stream.isPaused()]).to.deep.equal([[1, 2, 3], 1, true]);
    grants.shift()?.();
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect([seen, stream.isPaused()]).to.deep.equal([[1, 2, 3, 4, 5, 6], false]);
  });
});
