import { attack } from "../../support/attack";

attack("promises without end", {
  code: `async function main() { console.log("before"); const kept = []; for (;;) kept.push(new Promise(() => {})); }`,
  ends: "out_of_memory",
  limits: { wallMs: 20_000 },
});
