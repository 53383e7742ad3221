/** docs/from-lit.md: each row of its tables is a test here, by the row's first cell. */
import { expect } from "chai";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { endpointsOf } from "../../../protocol/http";
import { MAX_WALL_MS, RUN_LIMITS } from "../../../protocol/limits";
import { answering, responseOf, run, valueOf } from "../../support/sandbox";

const KEY = `0x04${"ab".repeat(32)}${"cd".repeat(31)}01`;

/** What each row claims, tried. */
const ROWS: Record<string, () => Promise<void>> = {
  "`Lit.Actions`, `LitActions`": async () => {
    expect(await valueOf("Lit.Actions === Actions && LitActions === Actions")).to.equal(true);
  },
  "`ethers`": async () => {
    expect(await responseOf(`async function main() { return [ethers.version, typeof Lit]; }`)).to.deep.equal([
      await valueOf(`(typeof LitActions, ethers.version)`),
      "object",
    ]);
    expect(await valueOf(`(typeof Lit, ethers.version)`)).to.match(/^ethers\/5/);
    expect(await valueOf(`ethers.version`)).to.match(/^6/);
    expect(await valueOf(`(typeof Actions, ethers.utils.id("x").length)`)).to.equal(66);
  },
  "`setResponse`": async () => {
    const response = await responseOf(
      `(async () => { LitActions.setResponse({ response: JSON.stringify({ a: 1 }) }); })()`,
    );
    expect(response).to.equal('{"a":1}');
    const alias = endpointsOf("runAction", "Keywright").find(({ path }) => path.endsWith("/lit_action"));
    expect(alias?.answer?.({ response, logs: "" })).to.deep.equal({ response: { a: 1 }, logs: "" });
  },
  "`getLitActionPublicKey`": async () => {
    const ops = answering({ getActionPublicKey: KEY });
    expect(await valueOf(`LitActions.getLitActionPublicKey({ ipfsId: "Qm" })`, { ops })).to.equal(KEY);
    expect(await valueOf(`LitActions.getLitActionPublicKey({ ipfsId: "Qm", compressed: true })`, { ops })).to.equal(
      `0x03${"ab".repeat(32)}`,
    );
  },
  "`getLitActionPrivateKey`, `getLitActionWalletAddress`": async () => {
    expect(
      await valueOf(`LitActions.getLitActionWalletAddress({ ipfsId: "Qm" })`, {
        ops: answering({ getActionWalletAddress: "0x1" }),
      }),
    ).to.equal("0x1");
    expect(await valueOf(`LitActions.getLitActionPrivateKey === Actions.getActionPrivateKey`)).to.equal(true);
  },
  "`showImportDetails`": async () => {
    expect(await valueOf(`LitActions.showImportDetails()`)).to.deep.equal([]);
  },
  "`LitHeaders`, `Lit.Headers`": async () => {
    expect(await valueOf("[LitHeaders, Lit.Headers, Object.isFrozen(LitHeaders)]")).to.deep.equal([{}, {}, true]);
  },
  "`LitAuth`, `Lit.Auth`": async () => {
    expect(await valueOf("[LitAuth.authSigAddress, LitAuth.resources, LitAuth === Lit.Auth]")).to.deep.equal([
      null,
      [],
      true,
    ]);
  },
  "`signEcdsa`, `signAndCombineEcdsa`, `ethPersonalSignMessageEcdsa`": () => refusedWith("signEcdsa", "signMessage"),
  "`decryptAndCombine`, `decryptToSingleNode`": () => refusedWith("decryptAndCombine", "Actions.Decrypt"),
  "`checkConditions`": () => refusedWith("checkConditions", "a condition in the code itself"),
  "`runOnce`, `broadcastAndCollect`": () => refusedWith("runOnce", "an action runs once"),
  "`call`": () => refusedWith("call", "cannot call another action"),
  "`getRpcUrl`": () => refusedWith("getRpcUrl", "an RPC endpoint of your own choice"),
  "`crypto.subtle`": async () => {
    expect(
      await valueOf(
        `["wrapKey", "sign", "verify", "deriveBits", "deriveKey"].map((name) => typeof crypto.subtle[name])`,
      ),
    ).to.deep.equal(["undefined", ...Array(4).fill("function")]);
    const { error } = await run(
      `async function main() { await crypto.subtle.generateKey({ name: "RSASSA-PKCS1-v1_5" }, true, ["sign"]); }`,
    );
    expect(error?.message).to.include("not generated here");
  },
  "`Blob`, `FormData`, streams, `EventTarget`, `CompressionStream`": async () => {
    expect(
      await valueOf(`[Blob, FormData, ReadableStream, EventTarget, CompressionStream].map((one) => typeof one)`),
    ).to.deep.equal(Array(5).fill("function"));
    expect(await valueOf(`typeof new Response("").formData`)).to.equal("undefined");
  },
  "time of a run": async () => {
    expect([RUN_LIMITS.wallMs, MAX_WALL_MS]).to.deep.equal([60_000, 900_000]);
    expect((await run("for (;;) {}", { limits: { wallMs: 100 } })).error?.code).to.equal("timed_out");
  },
  "code sent with a run": async () => {
    expect(RUN_LIMITS.codeBytes).to.equal(16 * 2 ** 20);
  },
  "fetches of a run": async () => {
    expect([RUN_LIMITS.fetches, RUN_LIMITS.lookups, RUN_LIMITS.fetchBytes]).to.deep.equal([50, 20, 10 * 2 ** 20]);
  },
  "key and signature operations of a run": async () => {
    expect(RUN_LIMITS.keyOps).to.equal(100);
  },
};

async function refusedWith(name: string, what: string): Promise<void> {
  const { error } = await run(`async function main() { await LitActions.${name}({}); }`);
  expect(error?.message).to.include(what);
}

describe("coming from Lit", () => {
  for (const [row, claim] of Object.entries(ROWS)) it(row, claim);

  it("has a test for each row of the page, and a row for each test", () => {
    const page = readFileSync(join(__dirname, "..", "..", "..", "docs", "from-lit.md"), "utf8");
    const rows = [...page.matchAll(/^\| (.+?) \| (same|different|missing) \|/gm)].map(([, first]) => first);
    expect(rows).to.deep.equal(Object.keys(ROWS));
  });
});
