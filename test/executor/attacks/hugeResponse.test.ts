import { attack } from "../../support/attack";

attack("a response of 5e8 characters", {
  code: `async function main() { console.log("before"); return 'x'.repeat(5e8); }`,
  ends: "response_too_large",
});
