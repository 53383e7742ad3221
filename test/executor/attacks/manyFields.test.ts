import { expect } from "chai";
import { expectInTime, itInTime } from "../../support/inTime";
import { longestHold, opsBed } from "../../support/ops";

const { pkpId, ops } = opsBed();
const FIELDS = Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`unknown${i}`, 0]));
const ARGS = JSON.stringify({ pkpId, curve: "secp256k1", message: "m", ciphertext: "c", ...FIELDS });

describe("attack: tens of thousands of unknown fields", () => {
  for (const wrong of [0, ""])
    itInTime(`or of storage keys that are ${JSON.stringify(wrong)} are refused without an issue for each`, async () => {
      const accessList = [{ address: "", storageKeys: new Array(40_000).fill(wrong) }];
      const args = JSON.stringify({ pkpId, transaction: { chainId: 1, nonce: 0, gasLimit: 1, accessList } });
      let code = "";
      const held = await longestHold(async () => {
        const given = await ops({ name: "signTransaction", args });
        code = given.ok ? "" : given.code;
      });
      expect(code).to.equal("invalid_arguments");
      expectInTime(held, 50);
    });

  for (const name of ["getPublicKey", "signDigest", "Encrypt", "Decrypt", "getActionWalletAddress"]) {
    itInTime(`in the arguments of ${name} are refused without looking at each`, async () => {
      let code = "";
      const held = await longestHold(async () => {
        const given = await ops({ name, args: ARGS });
        code = given.ok ? "" : given.code;
      });
      expect(code).to.be.oneOf(["limit_exceeded", "invalid_arguments"]);
      // Parsing the arguments' text counts, too.
      expectInTime(held, 150);
    });
  }
});
