import { attack } from "../../support/attack";

attack("filling arrays until the heap is full", {
  code: `async function main() { console.log("before"); for (const kept = []; ; ) kept.push(Array(1e7).fill(0)); }`,
  ends: "out_of_memory",
  limits: { wallMs: 10_000 },
});

attack(
  "filling an array of a billion elements: the engine keeps it as a table that grows slowly, so that its memory " +
    "or its time may end first",
  {
    code: `async function main() { console.log("before"); Array(1e9).fill(0); }`,
    ends: ["out_of_memory", "timed_out"],
    limits: { wallMs: 10_000 },
  },
);
