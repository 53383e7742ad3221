/**
 * A payer chooses the ids of the accounts that it creates. It copies a victim's PKPs into accounts whose ids share any
 * bits with the victim's, permits them everything there, and asks for signatures, keys and plaintexts.
 */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import type { Wallet } from "ethers";
import { toBeHex } from "ethers";
import fc from "fast-check";
import { keyIdOf, packedAccountId, type AccountId, type Address, type ApiKey } from "../../../protocol/ids";
import { AccountManager__factory, type AccountManager } from "../../../typechain-types";
import { SEED, count } from "../../support/counts";
import { TestChain, TestExecutor, mined } from "../../support/executor";

const ANY_PKP = "0x0000000000000000000000000000000000000000";
const TAIL_BITS = 128;

const OPS: Readonly<Record<string, string>> = {
  signMessage: `Actions.signMessage({ pkpId, message: "m" })`,
  signTransaction: `Actions.signTransaction({
    pkpId, transaction: { chainId: 1, nonce: 0, gasLimit: 21000, gasPrice: 1, to: pkpId } })`,
  signDigest: `Actions.signDigest({ pkpId, digest: "0x${"11".repeat(32)}" })`,
  signEd25519: `Actions.signEd25519({ pkpId, message: "m" })`,
  signSchnorr: `Actions.signSchnorr({ pkpId, digest: "0x${"11".repeat(32)}" })`,
  signP256: `Actions.signP256({ pkpId, message: "m" })`,
  getPrivateKey: "Actions.getPrivateKey({ pkpId })",
  getPublicKey: `Actions.getPublicKey({ pkpId, curve: "ed25519" })`,
  Decrypt: `Actions.Decrypt({ pkpId, ciphertext })`,
};
const ATTEMPT = `async function main({ pkpId, ciphertext }) {
  const given = {};
  ${Object.entries(OPS)
    .map(([name, call]) => `try { given.${name} = await ${call}; } catch (error) {}`)
    .join("\n  ")}
  return given;
}`;
/** One of them, whose refusal nothing catches. */
const ONE = `async function main({ pkpId, ciphertext, op }) {
  const ops = { ${Object.entries(OPS)
    .map(([name, call]) => `${name}: () => ${call}`)
    .join(",\n    ")} };
  return await ops[op]();
}`;

describe("an account whose id resembles another's", function () {
  this.timeout(180_000);
  let chain: TestChain;
  let executor: TestExecutor;
  let owner: Wallet;
  let payer: Wallet;
  let victim: AccountId;
  let pkp: Address;
  let path: string;
  let ciphertext: string;
  const as = (wallet: Wallet): AccountManager => AccountManager__factory.connect(chain.contractAddress, wallet);

  before(async () => {
    chain = await TestChain.start();
    executor = await TestExecutor.start(chain);
    [owner, payer] = [await chain.wallet(), await chain.wallet()];
    await chain.register(payer.address);
    victim = packedAccountId(owner.address as Address);
    const minted = await executor.call("mintPkp", { accountId: victim });
    [pkp, path] = [minted.walletAddress as Address, minted.derivationPath];
    await mined(as(owner).newChainSecuredAccount("victim", ""));
    await mined(as(owner).registerWalletDerivation(victim, pkp, path, "", ""));
    await mined(as(owner).addGroup(victim, "", "", [0], [pkp]));
    const key = await usageKeyOf(as(owner), victim);
    const { answer } = await executor.run(
      key,
      `async function main({ pkpId }) { return Actions.Encrypt({ pkpId, message: "secret" }); }`,
      { pkpId: pkp },
    );
    ciphertext = JSON.parse(answer?.response ?? "null") as string;
    expect(ciphertext).to.be.a("string");
  });
  after(async () => {
    await executor?.stop();
    await chain?.stop();
  });

  /** A live key that may execute in every group of the account. */
  async function usageKeyOf(contract: AccountManager, account: AccountId): Promise<ApiKey> {
    const key = randomBytes(32).toString("base64") as ApiKey;
    await mined(contract.setUsageApiKey(account, keyIdOf(key), 0, 0, "", "", false, false, false, [], [], [], [0]));
    return key;
  }

  /** The seizure: whatever the payer can do with the victim's path in an account of its own. */
  async function seize(twin: AccountId): Promise<Record<string, unknown> | string> {
    await mined(as(payer).newAccount(twin, true, "", "", payer.address));
    const registered = await mined(as(payer).registerWalletDerivation(twin, pkp, path, "", "")).then(
      () => true,
      () => false,
    );
    if (!registered) return "ForeignDerivationPath";
    await mined(as(payer).addGroup(twin, "", "", [0], [ANY_PKP]));
    await mined(as(payer).addGroup(twin, "", "", [0], [pkp]));
    const key = await usageKeyOf(as(payer), twin);
    for (const op of Object.keys(OPS)) {
      const { answer } = await executor.run(key, ONE, { pkpId: pkp, ciphertext, op });
      expect(answer?.error?.code, op).to.equal("permission_denied");
    }
    const { answer } = await executor.run(key, ATTEMPT, { pkpId: pkp, ciphertext });
    return answer?.response === undefined || answer.response === "null"
      ? {}
      : (JSON.parse(answer.response) as object as Record<string, unknown>);
  }

  it("gets nothing with its PKPs: no signature on any curve, no key, no plaintext", async () => {
    const bits = fc.uniqueArray(fc.integer({ min: 0, max: 255 }), { minLength: 1, maxLength: 128 });
    const taken = new Set<string>([victim]);
    await fc.assert(
      fc.asyncProperty(bits, async (differing) => {
        const twin = toBeHex(
          differing.reduce((id, bit) => id ^ (1n << BigInt(bit)), BigInt(victim)),
          32,
        ) as AccountId;
        if (taken.has(twin)) return;
        taken.add(twin);
        const sharesTail = differing.every((bit) => bit >= TAIL_BITS);
        expect(await seize(twin)).to.deep.equal(sharesTail ? {} : "ForeignDerivationPath");
      }),
      {
        seed: SEED,
        numRuns: count(8, 200),
        endOnFailure: true,
        // Tails of 128, 160, 192 and 255 shared bits; a shared head.
        examples: [[[128]], [[160]], [[192, 200]], [[255]], [[0]]],
      },
    );
  });

  it("gets nothing either while the victim is frozen and has denied every operation", async () => {
    await mined(as(owner).setPkpOps(victim, pkp, (1n << 64n) - 1n));
    await mined(as(owner).setAccountFrozen(victim, true));
    const twin = toBeHex(BigInt(victim) ^ (3n << 200n), 32) as AccountId;
    expect(await seize(twin)).to.deep.equal({});
  });
});
