import { expect } from "chai";
import fc from "fast-check";
import { computeAddress, getAddress, toBeHex, zeroPadValue } from "ethers";
import type { KeyId } from "../../protocol/ids";
import { MalformedAnswer } from "../../protocol/abi";
import { CONTRACT } from "../../relayer/chain/abi/contract";
import { keyAnswer, keyQuestion } from "../../protocol/keyState";
import { count, SEED } from "../support/counts";

const word = fc.bigInt({ min: 1n, max: 2n ** 256n - 1n });
const hex = (value: bigint): string => zeroPadValue(toBeHex(value), 32);
const address = fc
  .bigInt({ min: 1n, max: 2n ** 160n - 1n })
  .map((value) => getAddress(zeroPadValue(toBeHex(value), 20)));
const options = { seed: SEED, numRuns: count(100, 5_000) };

describe("the state of a key, decoded without the ABI coder", () => {
  it("is encoded and decoded as by the ABI coder", () => {
    fc.assert(
      fc.property(
        word,
        word,
        fc.boolean(),
        fc.boolean(),
        fc.boolean(),
        address,
        word,
        word,
        fc.boolean(),
        (id, account, isAccountKey, live, managed, owner, until, cap, frozen) => {
          const keyId = hex(id) as KeyId;
          expect(keyQuestion(keyId)).to.equal(CONTRACT.encodeFunctionData("getKey", [id]));
          const answer = CONTRACT.encodeFunctionResult("getKey", [
            [account, isAccountKey, live, managed, owner, until, cap, frozen],
          ]);
          const expected = {
            keyId,
            accountId: hex(account),
            isAccountKey,
            live,
            managed,
            expiresAtSeconds: until,
            capCents: cap,
          };
          expect(keyAnswer(keyId, answer)).to.deep.equal(expected);
        },
      ),
      options,
    );
  });

  it("is absent for an unknown key, and an error for impossible bytes", () => {
    const id = hex(1n) as KeyId;
    const nobody = CONTRACT.encodeFunctionResult("getKey", [
      [0n, false, false, false, computeAddress(hex(5n)), 0n, 0n, false],
    ]);
    expect(keyAnswer(id, nobody)).to.equal(undefined);
    for (const bad of ["0x", nobody.slice(0, -2), `${nobody}00`, nobody.replace(/.$/, "g"), null, 7]) {
      expect(() => keyAnswer(id, bad)).to.throw(MalformedAnswer);
    }
  });
});
