import { attack } from "../../support/attack";

attack("a response whose getter never returns", {
  code: `async function main() { console.log("before"); return { get a() { for (;;); } }; }`,
  ends: "timed_out",
});
