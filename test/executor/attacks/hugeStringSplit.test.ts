import { attack } from "../../support/attack";

attack("splitting a string of 2^28 characters (ends the whole child, whatever the heap limit)", {
  code: `async function main() { console.log("before"); 'x'.repeat(2 ** 28).split(''); }`,
  ends: "sandbox_crashed",
  limits: { wallMs: 10_000 },
});
