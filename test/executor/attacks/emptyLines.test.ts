import { expect } from "chai";
import { attack } from "../../support/attack";

attack("a million empty lines", {
  code: `async function main() { console.log("before"); for (let i = 0; i < 1e6; i++) console.log(""); }`,
  ends: ["logs_too_large", "timed_out"],
  limits: { wallMs: 1_000 },
  logs: (logs) => expect(logs.startsWith("before\n\n\n")).to.equal(true),
});
