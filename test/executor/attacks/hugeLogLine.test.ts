import { attack } from "../../support/attack";

attack("one line of 5e8 characters", {
  code: `async function main() { console.log("before"); console.log('x'.repeat(5e8)); }`,
  ends: "logs_too_large",
});
