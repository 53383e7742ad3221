import { attack } from "../../support/attack";

attack("a response that grows while it is turned into JSON", {
  code: `async function main() {
    console.log("before");
    return {
      toJSON() {
        return Array.from({ length: 1e5 }, () => "xxxxxxxxxx");
      },
    };
  }`,
  ends: "response_too_large",
  limits: { wallMs: 5_000 },
});
