import { expect } from "chai";
import { longestHold, opsBed } from "../../support/ops";

const { pkpId, answer } = opsBed();
const FIELDS = Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`unknown${i}`, 0]));

describe("attack: tens of thousands of unknown fields", () => {
  for (const op of ["getPublicKey", "signDigest", "Encrypt", "Decrypt", "getActionWalletAddress"]) {
    it(`in the arguments of ${op} are refused without looking at each`, async () => {
      let code = "";
      const held = await longestHold(async () => {
        const given = await answer(op, { pkpId, curve: "secp256k1", message: "m", ciphertext: "c", ...FIELDS });
        code = given.ok ? "" : given.code;
      });
      expect(code).to.be.oneOf(["limit_exceeded", "invalid_arguments"]);
      // Building the attack's own text counts, too.
      expect(held).to.be.below(150);
    });
  }
});
