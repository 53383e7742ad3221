import { attack } from "../../support/attack";

attack("a promise that never settles", {
  code: `async function main() { console.log("before"); await new Promise(() => {}); }`,
  ends: "timed_out",
});
