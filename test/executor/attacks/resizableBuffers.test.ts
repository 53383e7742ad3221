import { attack } from "../../support/attack";

/** Ways to a resizable buffer, whose memory the engine does not count. */
const WAYS = `[
  () => new ArrayBuffer(1, { maxByteLength: 1e8 }),
  () => new (new Uint8Array(1).buffer.constructor)(1, { maxByteLength: 1e8 }),
  () => Reflect.construct(ArrayBuffer, [1, { maxByteLength: 1e8 }]),
  () => new (class extends ArrayBuffer {})(1, { maxByteLength: 1e8 }),
  () => new ArrayBuffer(1, { maxByteLength: 1e8 }).transfer(2),
  () => structuredClone(new ArrayBuffer(1, { maxByteLength: 1e8 })),
]`;

attack("resizable buffers, which are not counted against the heap", {
  code: `async function main() {
    console.log("before");
    for (const make of ${WAYS}) {
      const buffer = make();
      if (
        !(buffer instanceof ArrayBuffer) ||
        buffer.byteLength < 1 ||
        buffer.resizable ||
        "resize" in buffer ||
        "maxByteLength" in buffer
      )
        throw new Error("it grows: " + make);
    }
    return "none of them grows";
  }`,
  ends: "none",
  limits: { wallMs: 20_000 },
});

attack("buffers that would have grown", {
  code: `async function main() {
    console.log("before");
    const kept = [];
    for (;;) kept.push(new Uint8Array(new ArrayBuffer(1e7, { maxByteLength: 1e8 })).fill(1));
  }`,
  ends: ["out_of_memory", "threw"],
  limits: { wallMs: 20_000 },
});
