import { attack } from "../../support/attack";

attack("a flood of array buffers", {
  code: `async function main() {
    console.log("before");
    const kept = [];
    for (;;) kept.push(new Uint8Array(1e7).fill(1));
  }`,
  ends: ["threw", "out_of_memory"],
  limits: { wallMs: 10_000 },
});
