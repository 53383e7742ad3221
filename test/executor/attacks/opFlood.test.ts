import { attack } from "../../support/attack";

attack("a flood of ops not awaited", {
  code: `async function main() {
    console.log("before");
    for (let i = 0; i < 1e5; i++) Actions.signMessage({ pkpId: "0x1", message: "m" }).catch(() => 0);
  }`,
  ends: "limit_exceeded",
  ops: () => ({ ok: true, value: '"0x"' }),
  limits: { wallMs: 5_000 },
});
