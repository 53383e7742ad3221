import { attack } from "../../support/attack";

attack("code nested too deeply to parse", {
  code: `async function main() { return ${"[".repeat(200_000)}${"]".repeat(200_000)}; }`,
  ends: "invalid_code",
  logs: "",
});
