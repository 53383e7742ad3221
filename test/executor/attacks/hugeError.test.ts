import { attack } from "../../support/attack";

attack("an error message of 5e8 characters", {
  code: `async function main() { console.log("before"); throw new Error('x'.repeat(5e8)); }`,
  ends: ["out_of_memory", "threw"],
  limits: { wallMs: 10_000 },
});
