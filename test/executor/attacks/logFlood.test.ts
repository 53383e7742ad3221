import { expect } from "chai";
import { RUN_LIMITS } from "../../../protocol/limits";
import { attack } from "../../support/attack";

attack("a million lines of logs", {
  code: `async function main() { for (let i = 0; i < 1e6; i++) console.log(\`line \${i}\`); }`,
  ends: "logs_too_large",
  limits: { wallMs: 10_000 },
  logs: (logs) => {
    expect(logs.startsWith("line 0\nline 1\n")).to.equal(true);
    expect(Buffer.byteLength(logs)).to.equal(RUN_LIMITS.logsBytes);
  },
});
