import { attack } from "../../support/attack";

attack("asking the host for random bytes for ever", {
  code: `async function main() { console.log("before"); for (;;) crypto.getRandomValues(new Uint8Array(65536)); }`,
  ends: "timed_out",
});
