import { attack } from "../../support/attack";

attack("resizable buffers, which are not counted against the heap", {
  code: `async function main() { console.log("before"); const kept = []; for (;;) { const buffer = new ArrayBuffer(1, { maxByteLength: 1e8 }); buffer.resize(1e8); new Uint8Array(buffer).fill(1); kept.push(buffer); } }`,
  ends: ["out_of_memory", "threw"],
  limits: { wallMs: 20_000 },
});
