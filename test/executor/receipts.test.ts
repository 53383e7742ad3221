/** Receipts of runs, as a stranger with the attested config document checks them. */
import { createHash, createPrivateKey, sign } from "node:crypto";
import { expect } from "chai";
import canonicalize from "canonicalize";
import { cidOfCode } from "../../protocol/cid";
import { verifyReceipt, type ReceiptClaims } from "../../client/verify";
import { Receipts, RunUse, type ReceiptParts } from "../../executor/receipts";
import { Keyring } from "../../executor/keys/keyring";
import { StatementKey } from "../../executor/keys/statementKey";
import { TestAccount, TestChain, TestExecutor, registerPayers } from "../support/executor";

const SIGN = `async function main({ pkpId, message }) {
  await Actions.signMessage({ pkpId, message });
  return { signature: await Actions.signMessage({ pkpId, message }) };
}`;
const THROW = `async function main() { throw new Error("no"); }`;
const UNLISTED = `async function main() { return 1; }`;

const sha256 = (value: unknown): string => createHash("sha256").update(JSON.stringify(value)).digest("hex");

describe("the receipt of a run", function () {
  this.timeout(60_000);
  let chain: TestChain;
  let executor: TestExecutor;
  let account: TestAccount;
  let pkp: string;
  let config: Record<string, unknown>;

  before(async () => {
    chain = await TestChain.start();
    executor = await TestExecutor.start(chain);
    await registerPayers(chain, executor);
    account = await TestAccount.create(chain, executor);
    pkp = await account.mintPkp();
    await account.addGroup([SIGN, THROW], [pkp]);
    ({ config } = await executor.call("info", {}));
  });
  after(async () => {
    await executor?.stop();
    await chain?.stop();
  });

  const receiptOf = async (code: string, params: object, key = account.key): Promise<string> => {
    const { answer, refusal } = await executor.run(key, code, params);
    return answer?.receipt ?? String(refusal?.facts?.["receipt"]);
  };
  const claimsOf = async (code: string, params: object, key?: string): Promise<ReceiptClaims> =>
    verifyReceipt(await receiptOf(code, params, key), config, { params });

  const receiptsOn = (at: ReceiptParts["chain"]): Receipts =>
    new Receipts({
      chain: at,
      statementKey: new StatementKey(new Keyring(Buffer.alloc(32, 9), `0x${"01".repeat(32)}` as never)),
      keyNamespace: `0x${"01".repeat(32)}` as never,
      configSha256: "ab".repeat(32),
      runSecondCents: 2,
    });

  it("states who ran what with which PKPs and operations, by which decision, for how long and how much", async () => {
    const params = { pkpId: pkp, message: "a secret message" };
    const { answer } = await executor.run(account.key, SIGN, params);
    const response: unknown = JSON.parse(String(answer?.response));
    const claims = await verifyReceipt(String(answer?.receipt), config, { params, response });
    const block = await chain.provider.getBlock(claims.block.number);
    expect(claims).to.deep.include({
      account_id: account.id,
      api_key_hash: account.id,
      action_ipfs_cid: await cidOfCode(SIGN),
      params_sha256: sha256(params),
      response_sha256: sha256(response),
      pkps: [pkp],
      ops: { signMessage: 2 },
      price_cents: 1,
      outcome: "succeeded",
      key_namespace: config["key_namespace"],
    });
    expect(claims.block.hash).to.equal(block?.hash);
    expect(claims.duration_ms).to.be.closeTo(answer?.usage.durationMs ?? -1, 0.001);
    expect(Date.now() - claims.started_at_ms).to.be.within(0, 10_000);
  });

  it("is in canonical form whatever the run used first, and whoever set it going", async () => {
    const code = `async function main({ pkpId }) {
      await Actions.signMessage({ pkpId, message: "m" });
      await Actions.Encrypt({ pkpId, message: "m" });
      return "\u2028 \u{1f4a5}";
    }`;
    await account.addGroup([code], [pkp]);
    const { ops } = await claimsOf(code, { pkpId: pkp });
    expect(Object.entries(ops)).to.deep.equal([
      ["Encrypt", 1],
      ["signMessage", 1],
    ]);
    const receipts = receiptsOn({ blockHash: async () => `0x${"0b".repeat(32)}` as never });
    const key = { keyId: account.id, accountId: account.id };
    const trigger = { id: "t", cause: "c" };
    const decision = { blockNumber: 7n, blockTimestamp: 1n };
    const run = { requestId: "r", key, cid: "Qm", paramsSha256: sha256({}), decision, trigger } as never;
    const [, payload = ""] = (await receipts.ofRefusal(run, "key_expired")).split(".");
    const text = Buffer.from(payload, "base64url").toString();
    expect(text).to.equal(canonicalize(JSON.parse(text)));
    expect(JSON.parse(text)).to.include({ v: 1, outcome: "key_expired" }).and.not.to.have.property("response_sha256");
  });

  it("carries nothing of params, response or key", async () => {
    const receipt = await receiptOf(SIGN, { pkpId: pkp, message: "a secret message" });
    const text = receipt
      .split(".")
      .slice(0, 2)
      .map((part) => Buffer.from(part, "base64url").toString())
      .join();
    for (const secret of ["secret", "signature", account.key]) expect(text).not.to.contain(secret);
  });

  it("is also that of a run that failed", async () => {
    expect(await claimsOf(THROW, {})).to.deep.include({ outcome: "threw", price_cents: 1, ops: {}, pkps: [] });
  });

  it("is free and names the reason when the contract refused the run", async () => {
    const { key, id } = await account.addUsageKey([1]);
    const claims = await claimsOf(UNLISTED, {}, key);
    expect(claims).to.deep.include({
      outcome: "action_not_permitted",
      price_cents: 0,
      api_key_hash: id,
      duration_ms: 0,
    });
    expect(claims).not.to.have.property("response_sha256");
  });

  it("fails with any one character changed", async () => {
    const receipt = await receiptOf(THROW, {});
    const accepted: number[] = [];
    for (let at = 0; at < receipt.length; at++) {
      const other = receipt[at] === "A" ? "B" : "A";
      // The neighbour in the alphabet differs in the lowest bits only, which the last character of a part may not use.
      const near = String.fromCharCode(receipt.charCodeAt(at) ^ 1);
      for (const changed of [other, near]) {
        const text = receipt.slice(0, at) + changed + receipt.slice(at + 1);
        await verifyReceipt(text, config).then(
          () => accepted.push(at),
          (error: Error) => expect(error.name).to.equal("Malformed"),
        );
      }
    }
    expect(accepted).to.deep.equal([]);
  });

  it("fails for other params, another response, another service and another config document", async () => {
    const params = { a: 1 };
    const receipt = await receiptOf(THROW, params);
    const refused = (document: Record<string, unknown>, subjects = {}): Promise<string> =>
      verifyReceipt(receipt, document, subjects).then(
        () => "accepted",
        (error: Error) => error.message,
      );
    expect(await refused(config, { params })).to.equal("accepted");
    expect(await refused(config, { params: { a: 2 } })).to.contain("js_params given is not");
    expect(await refused(config, { response: 1 })).to.contain("response given is not");
    expect(await refused({ ...config, statement_key: `0x${"11".repeat(32)}` })).to.contain("did not sign");
    expect(await refused({ ...config, chain_id: 1 })).to.contain("another config document");
    expect(await refused({})).to.contain("no statement key");
  });

  it("cannot be made from another statement of the same key", async () => {
    const seed = Buffer.alloc(32, 7);
    const pkcs8 = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed]);
    const key = createPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" });
    const x = Buffer.from(String(key.export({ format: "jwk" }).x), "base64url").toString("hex");
    const header = Buffer.from(JSON.stringify({ alg: "EdDSA", kid: `0x${x}` })).toString("base64url");
    const text = `${header}.${Buffer.from("{}").toString("base64url")}`;
    const forged = `${text}.${sign(null, Buffer.from(text), key).toString("base64url")}`;
    const error = await verifyReceipt(forged, { ...config, statement_key: `0x${x}` }).catch((one: Error) => one);
    expect((error as Error).message).to.contain("not a receipt");
  });

  it("waits only briefly for the hash of a block, and then says null", async () => {
    const receipts = receiptsOn({ blockHash: () => new Promise(() => undefined) });
    const decision = { blockNumber: 7n, blockTimestamp: 1n };
    const key = { keyId: account.id, accountId: account.id };
    const run = { requestId: "r", key, cid: "Qm", paramsSha256: sha256({}), decision } as never;
    const payment = { limitMs: 2_000, isFree: false };
    const started = performance.now();
    const receipt = await receipts.ofRun(run, { response: "1", durationMs: 2_500 } as never, payment, new RunUse());
    expect(performance.now() - started).to.be.below(2_000);
    const claims = JSON.parse(Buffer.from(receipt.split(".")[1] ?? "", "base64url").toString()) as ReceiptClaims;
    expect(claims.block).to.deep.equal({ number: 7, hash: null });
    // Two paid seconds: the third was not paid for.
    expect(claims.price_cents).to.equal(4);
  });
});
