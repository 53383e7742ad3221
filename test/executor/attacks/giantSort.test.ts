import { attack } from "../../support/attack";

attack("sorting ten million numbers with a comparison of its own", {
  code: `async function main() {
    console.log("before");
    const all = Float64Array.from({ length: 1e7 }, (_, i) => (i * 7919) % 1e7);
    for (;;) all.sort((a, b) => b - a);
  }`,
  ends: ["timed_out", "out_of_memory"],
  limits: { wallMs: 1_500 },
});
