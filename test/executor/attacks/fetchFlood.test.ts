import { attack } from "../../support/attack";

attack("a flood of fetches not awaited", {
  code: `async function main() {
    console.log("before");
    for (let i = 0; i < 1e5; i++) fetch("http://example.com/").catch(() => 0);
  }`,
  ends: "limit_exceeded",
  limits: { wallMs: 5_000 },
});
