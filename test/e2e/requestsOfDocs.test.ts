/**
 * The requests that the documentation makes with curl, run unchanged against a whole stack. Apart from the other
 * commands (commandsOfDocs.test.ts), which need no more than npm packages and so are run once in CI.
 */
import { expect } from "chai";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bash, linesOf, surroundings } from "../support/bash";
import { newApiAccount } from "../support/http";
import { needs } from "../support/needs";
import { useStack } from "../support/stack";

const page = (name: string): string => readFileSync(join(__dirname, "..", "..", "docs", name), "utf8");

describe("the requests in the documentation", function () {
  this.timeout(90_000);
  const stack = useStack();
  let folder: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), "requests-"));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it("docs/api.md", async function () {
    await needs(this, "curl");
    const [base = "", account = "", , wallet = ""] = linesOf(page("api.md"));
    const here = base.replace("http://127.0.0.1:8000", stack().baseUrl);
    const env = surroundings(folder, {});
    const made = JSON.parse((await bash(`${here}\n${account}`, folder, env)).text) as Record<string, unknown>;
    expect(made).to.include({ success: true }).and.to.have.property("api_key").with.length(44);
    const { code, text } = await bash(`KEY=${String(made["api_key"])}\n${here}\n${wallet}`, folder, env);
    expect(code, text).to.equal(0);
    expect(JSON.parse(text)).to.have.property("wallet_address");
  });

  it("docs/payments.md", async function () {
    await needs(this, "curl");
    const { api } = await newApiAccount(stack().baseUrl);
    const { payment_intent_id: intent } = await api.must("/billing/create_payment_intent", { amount_cents: 1_000 });
    const lines = linesOf(page("payments.md")).map((line) => line.replace("http://127.0.0.1:12111", stack().stripeUrl));
    expect(lines).to.have.length(2);
    for (const line of lines) {
      const { code, text } = await bash(
        line.replace("curl", "curl -sS"),
        folder,
        surroundings(folder, { INTENT: String(intent) }),
      );
      expect(code, text).to.equal(0);
      expect(JSON.parse(text.trim())).to.have.property("status", "succeeded");
    }
  });
});
