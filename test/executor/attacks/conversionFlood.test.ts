import { attack } from "../../support/attack";

attack("having the host convert large text for ever", {
  code: `async function main() {
    console.log("before");
    const text = "é".repeat(4e6);
    for (;;) new TextEncoder().encode(text);
  }`,
  ends: ["timed_out", "out_of_memory"],
  limits: { wallMs: 1_500 },
});
