import { attack } from "../../support/attack";

attack("registered symbols, which live outside the heap's objects", {
  code: `async function main() { console.log("before"); for (let i = 0; ; i++) Symbol.for('x'.repeat(1000) + i); }`,
  ends: ["out_of_memory", "timed_out"],
  limits: { wallMs: 20_000 },
});
