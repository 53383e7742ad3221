import { attack } from "../../support/attack";

attack("a loop that starts after an await", {
  code: `async function main() {
    console.log("before");
    await Actions.signMessage({ pkpId: "0x1", message: "m" }).catch(() => 0);
    for (;;);
  }`,
  ends: "timed_out",
});
