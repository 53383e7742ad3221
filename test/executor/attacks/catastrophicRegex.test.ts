import { attack } from "../../support/attack";

attack("a regular expression that backtracks for ever", {
  code: `async function main() { console.log("before"); return /^(a+)+$/.test('a'.repeat(40) + '!'); }`,
  ends: "timed_out",
});
