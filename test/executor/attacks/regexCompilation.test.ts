import { attack } from "../../support/attack";

attack("regular expressions too large to compile, without end", {
  code: `async function main() {
    console.log("before");
    for (let i = 1; ; i++)
      try {
        new RegExp("(a{" + i + "}){1000}".repeat(50)).test("b");
      } catch {}
  }`,
  ends: ["timed_out", "out_of_memory"],
});
