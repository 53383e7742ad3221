import { attack } from "../../support/attack";

attack("a thousand intervals that fire as often as they can", {
  code: `async function main() {
    console.log("before");
    for (let i = 0; i < 900; i++) setInterval(() => {}, 0);
    await new Promise(() => {});
  }`,
  ends: "timed_out",
});
