import { attack } from "../../support/attack";

attack("JSON of an array of 5e7 elements", {
  code: `async function main() { console.log("before"); return JSON.stringify(Array(5e7).fill(1)).length; }`,
  ends: ["out_of_memory", "sandbox_crashed", "timed_out"],
  limits: { wallMs: 10_000 },
});
