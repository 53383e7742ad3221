import { attack } from "../../support/attack";

attack("formatters, whose memory lies outside the heap", {
  code: `async function main() {
    console.log("before");
    const kept = [];
    for (;;) kept.push(new Intl.DateTimeFormat("en", { timeZone: "Europe/Berlin" }));
  }`,
  ends: ["out_of_memory", "timed_out"],
  limits: { wallMs: 8_000 },
});
