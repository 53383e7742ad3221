import { attack } from "../../support/attack";

attack("multiplying numbers of half a billion bits (the engine cannot be interrupted in it)", {
  code: `async function main() { console.log("before"); const big = (1n << 2n ** 29n) - 1n; for (;;) big * big; }`,
  ends: ["timed_out", "out_of_memory", "threw"],
  limits: { wallMs: 1_000 },
});
