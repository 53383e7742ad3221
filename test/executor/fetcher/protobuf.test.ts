/** What is counted of a protobuf message bounds what libraries read of it, also of one written to mislead. */
import { expect } from "chai";
import fc from "fast-check";
import { UnixFS } from "ipfs-unixfs";
import { countFields, type Fields } from "../../../executor/fetcher/protobuf";
import { count, SEED } from "../../support/counts";

const NODE: Fields = { 1: "bytes", 2: "bytes" };
const FILE: Fields = { 1: "number", 2: "bytes", 3: "number", 4: "number" };
const MOST = 1_000;

/** With more bytes than it needs, where asked for. */
function varint(value: number, spare = 0): number[] {
  if (value < 128 && spare === 0) return [value];
  return [(value % 128) + 128, ...varint(Math.floor(value / 128), value < 128 ? spare - 1 : spare)];
}

const spare = fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, fc.nat(11));
const number = fc
  .tuple(fc.oneof(fc.nat(5), fc.nat(300), fc.maxSafeNat()), spare)
  .map(([value, more]) => varint(value, more));
const wildKey = fc
  .tuple(fc.nat(5), fc.constantFrom(0, 1, 2, 2, 3, 5), spare)
  .map(([field, wireType, more]) => varint(field * 8 + wireType, more));
const { message } = fc.letrec<{ message: number[]; bytes: number[]; field: number[] }>((tie) => ({
  bytes: fc
    .tuple(
      fc.oneof({ maxDepth: 2 }, fc.array(fc.nat(255), { maxLength: 12 }), tie("message")),
      spare,
      fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, fc.constantFrom(1, 2 ** 31, 2 ** 32)),
    )
    .map(([bytes, more, beyond]) => [...varint(bytes.length + beyond, more), ...bytes]),
  field: fc.oneof(
    { weight: 4, arbitrary: fc.tuple(fc.constantFrom([0x08], [0x18], [0x20]), number).map((parts) => parts.flat()) },
    { weight: 4, arbitrary: tie("bytes").map((bytes) => [0x12, ...bytes]) },
    { weight: 2, arbitrary: fc.tuple(wildKey, fc.oneof(number, tie("bytes"))).map((parts) => parts.flat()) },
  ),
  message: fc.array(tie("field"), { maxLength: 8 }).map((fields) => fields.flat()),
}));
const sizes = (number: number): number[] => new Array<number[]>(number).fill([0x20, 0]).flat();
/** Who skips other bytes in the first field than the library finds fewer fields than it. */
const MISLEADING: [number[]][] = [
  [[0x08, 128, 128, 128, 128, 128, 0, 0x12, 8, 0x08, 0, ...sizes(3)]],
  [[0x1a, 4, ...sizes(2)]],
  [[0x49, 0, 0x08, 0, 0x08, 0, 0x08, 0, 0x12, 0x20, 128, 0, ...sizes(15)]],
];
const property = { seed: SEED, numRuns: count(10_000, 1_000_000) };

/** What a library says of it, or nothing where it refuses it. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

describe("fields of protobuf messages", function () {
  this.timeout(120_000);

  it("are counted exactly where they are written as nodes and files are", () => {
    const field = fc.oneof(
      fc.tuple(fc.constantFrom(1, 3, 4), fc.nat()).map(([id, value]) => [id * 8, ...varint(value)]),
      fc.uint8Array({ maxLength: 200 }).map((bytes) => [2 * 8 + 2, ...varint(bytes.length), ...bytes]),
    );
    fc.assert(
      fc.property(fc.array(field), (fields) => {
        expect(countFields(Uint8Array.from(fields.flat()), FILE, MOST)).to.equal(fields.length);
      }),
      { seed: SEED, numRuns: count(200, 10_000) },
    );
  });

  it("of a file of as many blocks as a node may have links are few", () => {
    for (const blocks of [0, 1, 174]) {
      const file = new UnixFS({ type: "file", blockSizes: new Array<bigint>(blocks).fill(262_144n) });
      expect(countFields(file.marshal(), FILE, 174 + 3)).to.be.within(blocks + 1, blocks + 3);
    }
  });

  it("are counted no further than one above the most", () => {
    expect(countFields(Buffer.alloc(2_000, Buffer.from("2000", "hex")), FILE, 10)).to.equal(11);
  });

  it("are at least as many as the sizes that the library finds in a file, however it is written", () => {
    let [accepted, withSizes] = [0, 0];
    fc.assert(
      fc.property(message, (bytes) => {
        const counted = countFields(Uint8Array.from(bytes), FILE, MOST);
        if (counted === undefined) return;
        accepted++;
        const found = attempt(() => UnixFS.unmarshal(Uint8Array.from(bytes)).blockSizes.length) ?? 0;
        if (found > 0) withSizes++;
        expect(found).to.be.at.most(counted);
      }),
      { ...property, examples: MISLEADING },
    );
    for (const [bytes] of MISLEADING) expect(UnixFS.unmarshal(Uint8Array.from(bytes)).blockSizes).to.not.be.empty;
    expect(Math.min(accepted, withSizes)).to.be.above(100);
  });

  it("are at least as many as the links that the library finds in a node, however it is written", async () => {
    const { decode } = await import("@ipld/dag-pb");
    const link = fc.tuple(spare, spare, fc.array(fc.constantFrom(0, 0x12, 0x7f, 0xff), { maxLength: 12 }));
    const links = fc.array(
      link.map(([more, evenMore, digest]) => {
        const hash = [0x01, 0x55, 0x00, digest.length, ...digest];
        return [...varint(0x12, more), ...varint(hash.length + 2, evenMore), 0x0a, hash.length, ...hash];
      }),
      { maxLength: 8 },
    );
    let [accepted, refused] = [0, 0];
    fc.assert(
      fc.property(links, (fields) => {
        const block = Uint8Array.from(fields.flat());
        const counted = countFields(block, NODE, MOST);
        const found = attempt(() => decode(block).Links.length) ?? 0;
        if (counted === undefined) return void refused++;
        accepted++;
        expect(found).to.be.at.most(counted);
      }),
      property,
    );
    expect(Math.min(accepted, refused)).to.be.above(100);
  });
});
