/** docs/from-lit.md: each row of its tables has a test here, found by the row's first cell. */
import { expect } from "chai";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Wallet, computeAddress, getBytes, id, recoverAddress, verifyMessage } from "ethers";
import type { OpAnswer, OpCall } from "../../../executor/sandbox/types";
import { endpointsOf } from "../../../protocol/http";
import { MAX_WALL_MS, RUN_LIMITS, type RunLimits } from "../../../protocol/limits";
import { answering, responseOf, run, valueOf } from "../../support/sandbox";

const KEY = `0x04${"ab".repeat(32)}${"cd".repeat(31)}01`;

/** What they answer with an endpoint is in test/e2e/fromLit.test.ts. */
async function namesNoEndpoint(call: string): Promise<void> {
  const { error } = await run(`async function main() { return LitActions.${call}; }`);
  expect(error?.message).to.match(/names no endpoint of the chain \w+\. Use an endpoint of your own choice/);
}

/** The test of each row. */
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
    expect(alias?.alias?.answer?.({ response, logs: "" })).to.deep.equal({ response: { a: 1 }, logs: "" });
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
  "`Encrypt`, `Decrypt`": async () => {
    const ops = answering({ Encrypt: "sealed", Decrypt: "open" });
    expect(await valueOf(`LitActions.Encrypt({ pkpId: "0x1", message: "m" })`, { ops })).to.equal("sealed");
    expect(await valueOf(`LitActions.Decrypt({ pkpId: "0x1", ciphertext: "c" })`, { ops })).to.equal("open");
  },
  "`getPrivateKey`": async () => {
    const ops = answering({ getPrivateKey: "0x2" });
    expect(await valueOf(`LitActions.getPrivateKey({ pkpId: "0x1" })`, { ops })).to.equal("0x2");
    expect(RUN_LIMITS.privateKeyReads).to.equal(10);
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
  "`signEcdsa`, `signAndCombineEcdsa`": async () => {
    const { signingKey } = Wallet.createRandom();
    const publicKey = signingKey.publicKey.slice(2);
    const digest = id("anything");
    const expected = signingKey.sign(digest);
    const ops = ({ name, args }: OpCall): OpAnswer => {
      expect([name, JSON.parse(args)]).to.deep.equal(["signDigest", { pkpId: `0x${publicKey}`, digest }]);
      return { ok: true, value: JSON.stringify(expected.serialized) };
    };
    const toSign = [...getBytes(digest)];
    const signed = await run(
      `(async () => { await LitActions.signEcdsa({ toSign: new Uint8Array(toSign), publicKey, sigName }); })()`,
      { ops, params: { toSign, publicKey: `0x${publicKey}`, sigName: "sig1" } },
    );
    const { sig1 } = JSON.parse(signed.signatures ?? "{}") as Record<string, Record<string, string>>;
    expect(signed.response).to.equal("null");
    expect(sig1).to.deep.equal({
      r: expected.r.slice(2),
      s: expected.s.slice(2),
      recid: expected.yParity,
      signature: expected.serialized,
      publicKey,
      dataSigned: digest.slice(2),
    });
    const combined = await responseOf(
      `async function main({ toSign, publicKey }) {
         const made = JSON.parse(await Lit.Actions.signAndCombineEcdsa({ toSign, publicKey, sigName: "sig1" }));
         return ethers.utils.joinSignature({ r: "0x" + made.r.substring(2), s: "0x" + made.s, v: made.v });
       }`,
      { ops, params: { toSign, publicKey } },
    );
    expect(combined).to.equal(expected.serialized);
    expect(
      (await run(`LitActions.signEcdsa({ toSign: [1], publicKey: "04", sigName: "s" })`)).error?.message,
    ).to.include("32 bytes");
  },
  "`sign`": async () => {
    const { signingKey } = Wallet.createRandom();
    const digest = id("anything");
    const ops = answering({ signDigest: signingKey.sign(digest).serialized });
    const signs = (signingScheme: string) =>
      run(
        `(async () => {
           const made = await Lit.Actions.sign({ toSign, publicKey, sigName: "s", signingScheme: "${signingScheme}" });
           Lit.Actions.setResponse({ response: made });
         })();`,
        { ops, params: { toSign: [...getBytes(digest)], publicKey: signingKey.publicKey } },
      );
    const { response, signatures = "{}" } = await signs("EcdsaK256Sha256");
    const { s } = JSON.parse(signatures) as Record<string, { signature: string }>;
    expect([response, recoverAddress(digest, s?.signature ?? "0x")]).to.deep.equal([
      '"success"',
      computeAddress(signingKey),
    ]);
    const { error, signatures: none } = await signs("SchnorrEd25519Sha512");
    expect([error?.message, none]).to.deep.equal([error?.message, undefined]);
    expect(error?.message).to.include("signEd25519");
  },
  "`signAndCombine`": () => refusedWith("signMessage", "signAndCombine"),
  "`ethPersonalSignMessageEcdsa`": async () => {
    const wallet = Wallet.createRandom();
    const { publicKey } = wallet.signingKey;
    const ops = answering({ signMessage: await wallet.signMessage("hello") });
    const { signatures = "{}" } = await run(
      `async function main() {
         return LitActions.ethPersonalSignMessageEcdsa({ message: "hello", publicKey: "${publicKey}", sigName: "s" });
       }`,
      { ops },
    );
    const { s } = JSON.parse(signatures) as Record<string, { signature: string }>;
    expect(verifyMessage("hello", s?.signature ?? "")).to.equal(wallet.address);
  },
  "`signAsAction`": () => refusedWith("signEd25519AsAction", "signAsAction"),
  "`verifyActionSignature`": () => refusedWith("getActionPublicKey", "verifyActionSignature"),
  "`encrypt`, `encrypt_bls`": () => refusedWith("Actions.Encrypt", "encrypt", "encrypt_bls"),
  "`decrypt`, `decryptAndCombine`, `decryptToSingleNode`": () =>
    refusedWith("Actions.Decrypt", "decrypt", "decryptAndCombine", "decryptToSingleNode"),
  "`aesDecrypt`": () => refusedWith("AES-GCM", "aesDecrypt"),
  "`checkConditions`": () => refusedWith("a condition in the code itself", "checkConditions"),
  "`callContract`": () => namesNoEndpoint(`callContract({ chain: "base", txn: "0x" })`),
  "`call`": () => refusedWith("cannot call another action", "call"),
  "`runOnce`, `broadcastAndCollect`": async () => {
    expect(await valueOf(`LitActions.runOnce({ waitForResponse: true, name: "n" }, async () => "once")`)).to.equal(
      "once",
    );
    expect(await valueOf(`LitActions.broadcastAndCollect({ name: "n", value: "v" })`)).to.deep.equal(["v"]);
  },
  "`getRpcUrl`": async () => {
    await namesNoEndpoint(`getRpcUrl({ chain: "base" })`);
    await namesNoEndpoint(`getRpcUrl({ chain: "constructor" })`);
  },
  "`getLatestNonce`": () => namesNoEndpoint(`getLatestNonce({ chain: "base", address: "0x" })`),
  "`claimKey`": () => refusedWith("POST /core/v1/create_wallet", "claimKey"),
  "`getPermissions`, `getPermittedActions`, `getPermittedAddresses`, `getPermittedAuthMethods`": () =>
    refusedWith(
      "the group's lists",
      "getPermissions",
      "getPermittedActions",
      "getPermittedAddresses",
      "getPermittedAuthMethods",
    ),
  "`getPermittedAuthMethodScopes`": () => refusedWith("the group's lists", "getPermittedAuthMethodScopes"),
  "`isPermittedAction`, `isPermittedAddress`, `isPermittedAuthMethod`": () =>
    refusedWith("the account contract's views", "isPermittedAction", "isPermittedAddress", "isPermittedAuthMethod"),
  "`pubkeyToTokenId`": () => refusedWith("the PKP's address", "pubkeyToTokenId"),
  "`uint8arrayToString`, `uint8arrayFromString`": async () => {
    expect(
      await valueOf(
        `["utf8", undefined, "hex", "base16", "base64", "base64pad", "base64url", "base64urlpad"].map((encoding) => {
           const text = LitActions.uint8arrayToString(new Uint8Array([0xc3, 0xbf, 0x3f, 0x3e]), encoding);
           return [text, [...LitActions.uint8arrayFromString(text, encoding)].join()];
         })`,
      ),
    ).to.deep.equal(
      ["ÿ?>", "ÿ?>", "c3bf3f3e", "c3bf3f3e", "w78/Pg", "w78/Pg==", "w78_Pg", "w78_Pg=="].map((text) => [
        text,
        "195,191,63,62",
      ]),
    );
    const { error } = await run(`LitActions.uint8arrayFromString("1", "base58btc")`);
    expect(error?.message).to.include("base58btc is unknown here");
  },
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
};

interface Limit {
  readonly inForce: Partial<RunLimits>;
  /** The result beyond each limit, tested with a lower one. */
  readonly beyond?: () => Promise<void>;
}

const LIMITS: Record<string, Limit> = {
  "time of a run": {
    inForce: { wallMs: 60_000 },
    beyond: async () => {
      expect(MAX_WALL_MS).to.equal(900_000);
      await endsWith("timed_out", "for (;;) {}", { wallMs: 100 });
    },
  },
  "memory of a run": { inForce: { heapMiB: 128 } },
  "code sent with a run": { inForce: { codeBytes: 16 * 2 ** 20, parseMs: 10_000 } },
  "`js_params`": { inForce: { paramsBytes: 128 * 1024 } },
  "response, logs": {
    inForce: { responseBytes: 100 * 1024, logsBytes: 100 * 1024 },
    beyond: async () => {
      await endsWith("response_too_large", `async function main() { return "x".repeat(20); }`, { responseBytes: 10 });
      await endsWith("logs_too_large", `async function main() { console.log("x".repeat(20)); }`, { logsBytes: 10 });
    },
  },
  "fetches of a run": {
    inForce: { fetches: 50, lookups: 20, fetchTimeoutMs: 30_000, fetchBytes: 10 * 2 ** 20 },
    beyond: () =>
      endsWith("limit_exceeded", `async function main() { await fetch("https://example.com"); }`, { fetches: 0 }),
  },
  imports: { inForce: { imports: 20, importBytes: 5 * 2 ** 20 } },
  "private keys read in a run": { inForce: { privateKeyReads: 10 } },
  "key and signature operations of a run": {
    inForce: { keyOps: 100 },
    beyond: () =>
      endsWith(
        "limit_exceeded",
        `async function main({ pkpId }) { await LitActions.getPublicKey({ pkpId: "0x1", curve: "p256" }); }`,
        { keyOps: 0 },
      ),
  },
  "what one signature is made of": {
    inForce: {
      signBytes: 128 * 1024,
      typedDataBytes: 16 * 1024,
      typedDataTypes: 64,
      typedDataPaths: 256,
      typedDataHashBytes: 48 * 1024,
    },
  },
};

async function refusedWith(what: string, ...names: string[]): Promise<void> {
  for (const name of names) {
    const { error } = await run(`async function main() { await LitActions.${name}({}); }`);
    expect(error?.message, name).to.include(`Actions.${name} does not exist here`).and.include(what);
  }
}

async function endsWith(code: string, source: string, limits: Partial<RunLimits>): Promise<void> {
  expect((await run(source, { limits })).error?.code).to.equal(code);
}

const PAGE = readFileSync(join(__dirname, "..", "..", "..", "docs", "from-lit.md"), "utf8");

describe("migration from Lit", () => {
  for (const [row, claim] of Object.entries(ROWS)) it(row, claim);
  for (const [row, { inForce, beyond }] of Object.entries(LIMITS))
    it(row, async () => {
      expect(RUN_LIMITS).to.include(inForce);
      await beyond?.();
    });

  it("has a test for each row of the page, and a row for each test", () => {
    const rows = [...PAGE.matchAll(/^\| (.+?) \| (same|different|missing) \|/gm)].map(([, first]) => first);
    expect(rows).to.deep.equal([...Object.keys(ROWS), ...Object.keys(LIMITS)]);
  });

  it("has a row for each function that names its replacement", async () => {
    const names = (await valueOf(`Object.keys(Actions)`)) as string[];
    const replaced = [];
    for (const name of names) {
      const { error } = await run(`async function main() { await Actions.${name}({}); }`);
      if (error?.message.includes("does not exist here") === true) replaced.push(name);
    }
    expect(replaced).to.have.length.greaterThan(20);
    for (const name of replaced) expect(PAGE, name).to.match(new RegExp(`^\\|.*\`${name}\`.*\\| missing \\|`, "m"));
  });

  it("has a row for each limit of a run", () => {
    const shown = Object.values(LIMITS).flatMap(({ inForce }) => Object.keys(inForce));
    expect(shown.sort()).to.deep.equal(Object.keys(RUN_LIMITS).sort());
  });
});
