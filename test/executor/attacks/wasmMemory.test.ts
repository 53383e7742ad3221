import { expect } from "chai";
import { attack } from "../../support/attack";

attack("WebAssembly memory of 512 MiB", {
  code: `async function main() { console.log("before"); new WebAssembly.Memory({ initial: 8192 }); }`,
  ends: "threw",
  and: ({ error }) => expect(error?.message).to.contain("WebAssembly is not defined"),
});
