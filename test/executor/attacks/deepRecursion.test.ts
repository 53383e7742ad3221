import { expect } from "chai";
import { attack } from "../../support/attack";

attack("recursion without end", {
  code: `async function main() { console.log("before"); (function dive() { dive(); })(); }`,
  ends: "threw",
  and: ({ error }) => expect(error?.message).to.contain("Maximum call stack size exceeded"),
});
