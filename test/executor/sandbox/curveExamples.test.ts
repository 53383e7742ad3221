/** Examples for other chains, each checked by an established library that shares no code with the sandbox. */
import { expect } from "chai";
import { initEccLib, payments, Psbt, Transaction, networks } from "bitcoinjs-lib";
import { createLocalJWKSet, jwtVerify } from "jose";
import { createHash, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as ecc from "tiny-secp256k1";
import { schnorr } from "@noble/curves/secp256k1";
import {
  getAddressDecoder,
  getBase64Encoder,
  getCompiledTransactionMessageDecoder,
  getPublicKeyFromAddress,
  getTransactionDecoder,
  verifySignature,
  address,
  type Address,
} from "@solana/kit";
import { createLocalRunner, type LocalRun, type LocalRunner } from "../../../scripts/action/localRun";
import { STANDARD_ACTIONS } from "../../../client/standardActions";
import { bytes, nobleVerify } from "../../support/nobleKeys";

type Response = Record<string, string>;

describe("examples for other chains", () => {
  let runner: LocalRunner;
  before(async () => {
    initEccLib(ecc);
    runner = await createLocalRunner();
  });
  after(() => runner.close());

  const run = (name: string, params: Record<string, unknown>): Promise<LocalRun> =>
    runner.run(readFileSync(join(__dirname, "../../../examples", name), "utf8"), params);
  async function responseOf<T = Response>(name: string, params: Record<string, unknown>): Promise<T> {
    const { error, response } = await run(name, params);
    expect(error, JSON.stringify(error)).to.equal(undefined);
    return JSON.parse(response) as T;
  }
  async function publicKey(curve: string): Promise<Buffer> {
    const { response } = await runner.run(
      "async function main({ pkpId, curve }) { return Actions.getPublicKey({ pkpId, curve }); }",
      { curve },
    );
    return bytes(JSON.parse(response) as string);
  }

  describe("solana-transfer.js", () => {
    const to = address("9B5XszUGdMaxCZ7uSQhPzdks5ZQSmWxrmzCSvtJ6Ns6g");
    const recentBlockhash = "GfVcyD4kkTrj4bKc7WA9sZCin9JDbdT4Zkd3EittNR1W";

    it("makes a transaction that Solana's library decodes and whose signature it verifies", async () => {
      const { transaction } = await responseOf("solana-transfer.js", { to, lamports: "5000", recentBlockhash });
      const { messageBytes, signatures } = getTransactionDecoder().decode(getBase64Encoder().encode(transaction ?? ""));
      const from = getAddressDecoder().decode(await publicKey("ed25519"));
      const signature = signatures[from];
      if (!signature) throw new Error("the PKP did not sign");
      expect(await verifySignature(await getPublicKeyFromAddress(from as Address), signature, messageBytes)).to.equal(
        true,
      );
      const message = getCompiledTransactionMessageDecoder().decode(messageBytes);
      expect(message).to.deep.include({
        version: "legacy",
        staticAccounts: [from, to, "11111111111111111111111111111111"],
        lifetimeToken: recentBlockhash,
      });
      const data = Buffer.alloc(12);
      data.writeUInt32LE(2);
      data.writeBigUInt64LE(5_000n, 4);
      const [instruction] = "instructions" in message ? message.instructions : [];
      expect(instruction).to.deep.include({ programAddressIndex: 2, accountIndices: [0, 1] });
      expect(Buffer.from(instruction?.data ?? []).equals(data)).to.equal(true);
    });

    it("does not pay more than its limit", async () => {
      const { error } = await run("solana-transfer.js", { to, lamports: "5000000000", recentBlockhash });
      expect(error?.message).to.contain("more than this action signs");
      // In 64 bits these are 2^64 - 1 and 5,000,000,000.
      for (const lamports of ["-1", String(5_000_000_000n - 2n ** 64n)])
        expect((await run("solana-transfer.js", { to, lamports, recentBlockhash })).error?.message).to.contain(
          "negative",
        );
    });
  });

  it("taproot-spend.js signs the hash that bitcoinjs-lib computes, for the address it returns", async () => {
    const payment = payments.p2tr({ internalPubkey: await publicKey("bip340"), network: networks.testnet });
    const [scriptPubKey, outputKey] = [payment.output, payment.pubkey];
    if (!scriptPubKey || !outputKey) throw new Error("no output key");
    const coins = [50_000n, 70_000n].map((value, vout) => ({ txid: `${vout + 1}`.repeat(64), vout, value }));
    const elsewhere =
      payments.p2wpkh({ hash: Buffer.alloc(20, 7), network: networks.testnet }).output ?? Buffer.alloc(0);
    const { signatures } = await responseOf<{ signatures: string[] }>("taproot-spend.js", {
      inputs: coins.map(({ txid, vout, value }) => ({
        txid,
        vout,
        value: String(value),
        scriptPubKey: `0x${Buffer.from(scriptPubKey).toString("hex")}`,
      })),
      outputs: [{ value: "119000", scriptPubKey: `0x${Buffer.from(elsewhere).toString("hex")}` }],
    });
    const transaction = new Transaction();
    transaction.version = 2;
    for (const { txid, vout } of coins) transaction.addInput(Buffer.from(txid, "hex").reverse(), vout, 0xfffffffd);
    transaction.addOutput(elsewhere, 119_000n);
    signatures.forEach((signature, index) => {
      const scripts = coins.map(() => scriptPubKey);
      const digest = transaction.hashForWitnessV1(
        index,
        scripts,
        coins.map(({ value }) => value),
        Transaction.SIGHASH_DEFAULT,
      );
      expect(schnorr.verify(bytes(signature), digest, outputKey), `input ${index}`).to.equal(true);
    });
    const psbt = new Psbt({ network: networks.testnet });
    coins.forEach(({ txid, vout, value }) =>
      psbt.addInput({
        hash: txid,
        index: vout,
        sequence: 0xfffffffd,
        witnessUtxo: { script: scriptPubKey, value },
        tapInternalKey: payment.internalPubkey,
      }),
    );
    psbt.addOutput({ script: elsewhere, value: 119_000n });
    signatures.forEach((signature, index) => psbt.updateInput(index, { tapKeySig: bytes(signature) }));
    expect(
      psbt.validateSignaturesOfAllInputs((key, digest, signature) => schnorr.verify(signature, digest, key)),
    ).to.equal(true);
    expect(psbt.finalizeAllInputs().extractTransaction().virtualSize()).to.be.above(100);
  });

  it("taproot-spend.js signs no outputs that could be read as others", async () => {
    const coin = { value: "200000000", scriptPubKey: `0x5120${"11".repeat(32)}` };
    const inputs = [{ ...coin, txid: "1".repeat(64), vout: 0 }];
    // 0xfd says that the length follows in two bytes: the first script then ends with the second output in it, and
    // what that one has is no output, but a fee.
    const lengthOfBoth = Buffer.alloc(2);
    lengthOfBoth.writeUInt16LE(253 - 2 + 8 + 1 + 34);
    const swallowing = { value: "100000000", scriptPubKey: `0x${lengthOfBoth.toString("hex")}${"00".repeat(251)}` };
    const outputs = [swallowing, { ...coin, value: "99990000" }];
    const { error } = await run("taproot-spend.js", { inputs, outputs });
    expect(error?.message).to.contain("at most 252 bytes");
    const written = outputs.map(({ value, scriptPubKey }) => {
      const [amount, script] = [Buffer.alloc(8), bytes(scriptPubKey)];
      amount.writeBigUInt64LE(BigInt(value));
      return Buffer.concat([amount, Buffer.of(script.length), script]);
    });
    const input = Buffer.concat([Buffer.alloc(36, 1), Buffer.alloc(5)]);
    const parts = [Buffer.of(2, 0, 0, 0, 1), input, Buffer.of(1), ...written, Buffer.alloc(4)];
    expect(Transaction.fromBuffer(Buffer.concat(parts)).outs.map(({ value }) => BigInt(value))).to.deep.equal([
      100_000_000n,
    ]);
  });

  it("issue-token.js issues a token that jose accepts, and none with a longer lifetime than allowed", async () => {
    const key = await publicKey("p256");
    const [x, y] = [key.subarray(1, 33), key.subarray(33)].map((part) => part.toString("base64url"));
    const keys = createLocalJWKSet({ keys: [{ kty: "EC", crv: "P-256", x: x ?? "", y: y ?? "" }] });
    const { token } = await responseOf("issue-token.js", { subject: "ann", audience: "them" });
    const { payload } = await jwtVerify(token ?? "", keys, {
      issuer: runner.pkpId,
      audience: "them",
      algorithms: ["ES256"],
    });
    expect(payload.sub).to.equal("ann");
    for (const seconds of [9_999, "9", ["9"], 0.5, 0, null, true])
      expect((await run("issue-token.js", { subject: "ann", audience: "them", seconds })).error?.message).to.contain(
        "at most 3600 seconds",
      );
  });

  it("the standard actions sign their input with each key", async () => {
    const standard = async (name: keyof typeof STANDARD_ACTIONS, params: object): Promise<string> => {
      const { error, response } = await runner.run(STANDARD_ACTIONS[name].code, { ...params });
      expect(error, JSON.stringify(error)).to.equal(undefined);
      return JSON.parse(response) as string;
    };
    const given = `0x${"ab".repeat(32)}`;
    const key = async (curve: string): Promise<string> => `0x${(await publicKey(curve)).toString("hex")}`;
    expect(
      nobleVerify("ed25519", await key("ed25519"), await standard("ed25519", { bytes: given }), bytes(given)),
    ).to.equal(true);
    expect(
      nobleVerify("bip340", await key("bip340"), await standard("schnorr", { digest: given }), bytes(given)),
    ).to.equal(true);
    const hash = createHash("sha256").update(bytes(given)).digest();
    expect(nobleVerify("p256", await key("p256"), await standard("p256", { bytes: given }), hash)).to.equal(true);
  });

  it("aptos-message.js signs the wallet's text, and no forged field", async () => {
    const { fullMessage, signature } = await responseOf("aptos-message.js", { application: "app.example", nonce: "7" });
    expect(fullMessage).to.equal("APTOS\napplication: app.example\nmessage: Sign in\nnonce: 7");
    const key = {
      key: { kty: "OKP", crv: "Ed25519", x: (await publicKey("ed25519")).toString("base64url") },
      format: "jwk",
    } as const;
    expect(verify(null, Buffer.from(fullMessage ?? ""), key, bytes(signature ?? ""))).to.equal(true);
    expect((await run("aptos-message.js", { application: "a\nnonce: 1", nonce: "7" })).error?.message).to.contain(
      "forge",
    );
  });
});
