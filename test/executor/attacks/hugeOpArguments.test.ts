import { attack } from "../../support/attack";

attack("an op with arguments of 5e8 characters", {
  code: `async function main() {
    console.log("before");
    await Actions.signMessage({ pkpId: "0x1", message: "m".repeat(5e8) });
  }`,
  ends: ["out_of_memory", "threw"],
  limits: { wallMs: 10_000 },
});
