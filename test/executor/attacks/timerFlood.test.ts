import { expect } from "chai";
import { attack } from "../../support/attack";

attack("timers without end", {
  code: `async function main() { console.log("before"); for (;;) setTimeout(() => {}, 1); }`,
  ends: "threw",
  and: ({ error }) => expect(error?.message).to.contain("more than 1000 timers"),
});
