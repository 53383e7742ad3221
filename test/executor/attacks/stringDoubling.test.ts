import { attack } from "../../support/attack";

attack("doubling a string for ever", {
  code: `async function main() { console.log("before"); let text = 'x'; for (;;) text += text; }`,
  ends: ["threw", "out_of_memory"],
});
