import { attack } from "../../support/attack";

attack("filling an array of a billion elements (ends the whole child, whatever the heap limit)", {
  code: `async function main() { console.log("before"); Array(1e9).fill(0); }`,
  ends: ["out_of_memory", "sandbox_crashed", "timed_out"],
  limits: { wallMs: 10_000 },
});
