import { attack } from "../../support/attack";

attack("blocking the thread with Atomics.wait", {
  code: `async function main() {
    console.log("before");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  }`,
  ends: "threw",
});
