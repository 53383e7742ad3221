/** Signed transactions: byte for byte those of ethers. */
import { expect } from "chai";
import { hexlify, Transaction } from "ethers";
import fc from "fast-check";
import { publicKeyOf, signDigest } from "../../../executor/keys/secp256k1";
import { signTransaction } from "../../../executor/writes/transaction";
import { parseAddress, type Address } from "../../../protocol/ids";
import { SEED, count } from "../../support/counts";

const wei = fc.bigInt({ min: 0n, max: 2n ** 128n - 1n });
const fields = fc.record({
  chainId: fc.bigInt({ min: 1n, max: 2n ** 53n }),
  nonce: fc.nat(),
  maxPriorityFeePerGas: wei,
  maxFeePerGas: wei,
  gasLimit: fc.bigInt({ min: 0n, max: 2n ** 40n }),
  to: fc
    .uint8Array({ minLength: 20, maxLength: 20 })
    .map((bytes) => parseAddress(`0x${Buffer.from(bytes).toString("hex")}`) as Address),
  value: wei,
  data: fc.uint8Array({ maxLength: 400 }),
});
const secrets = fc.uint8Array({ minLength: 32, maxLength: 32, min: 1, max: 254 });

describe("a payer's transaction", () => {
  it("is the one that ethers serializes, with the same hash and sender", () => {
    const seenShort = new Set<boolean>();
    fc.assert(
      fc.property(fields, secrets, (given, secret) => {
        const tip = given.maxPriorityFeePerGas % (given.maxFeePerGas + 1n);
        const { rawTransaction, hash } = signTransaction({ ...given, maxPriorityFeePerGas: tip }, (digest) =>
          signDigest(secret, digest),
        );
        const parsed = Transaction.from(rawTransaction);
        const expected = Transaction.from({
          type: 2,
          ...given,
          data: hexlify(given.data),
          maxPriorityFeePerGas: tip,
        });
        expect(parsed.unsignedSerialized).to.equal(expected.unsignedSerialized);
        expected.signature = parsed.signature;
        expect(rawTransaction).to.equal(expected.serialized);
        expect(hash).to.equal(expected.hash);
        expect(parsed.fromPublicKey).to.equal(publicKeyOf(secret));
        seenShort.add(BigInt(parsed.signature?.r ?? 0) < 2n ** 248n);
      }),
      { seed: SEED, numRuns: count(300, 10_000) },
    );
    expect(seenShort, "signatures with a leading zero byte, too").to.include(true);
  });
});
