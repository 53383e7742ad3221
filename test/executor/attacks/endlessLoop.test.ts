import { attack } from "../../support/attack";

attack("an endless loop", {
  code: `async function main() { console.log("before"); for (;;); }`,
  ends: "timed_out",
});
