/** Ops that encrypt, and those that hand out a private key. */
import { expect } from "chai";
import { SigningKey, computeAddress } from "ethers";
import fc from "fast-check";
import { KeywrightError } from "../../../protocol/errors";
import type { AccountId } from "../../../protocol/ids";
import { SEED, count } from "../../support/counts";
import {
  ACCOUNT,
  CID,
  OTHER_CID,
  PKP,
  ScriptedChain,
  answer,
  decision,
  keyring,
  known,
  minted,
  opsOver,
  refusal,
  value,
} from "../../support/scriptedOps";

describe("encryption ops", () => {
  it("round-trip any text, including the empty one, and never give the same ciphertext twice", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "grapheme" }), async (message) => {
        const [first, second] = [
          await value("Encrypt", { pkpId: PKP, message }),
          await value("Encrypt", { pkpId: PKP, message }),
        ];
        expect(first).to.match(/^kw1\.[A-Za-z0-9_-]{38,}$/);
        expect(second).to.not.equal(first);
        expect(await value("Decrypt", { pkpId: PKP, ciphertext: first })).to.equal(message);
      }),
      { seed: SEED, numRuns: count(50, 1_000), examples: [[""], ["héllo 😀 \u0000"]] },
    );
  });

  it("refuse a ciphertext with any character changed, cut, or lengthened", async () => {
    const ciphertext = await value("Encrypt", { pkpId: PKP, message: "a secret" });
    for (let at = 0; at < ciphertext.length; at++) {
      const changed = ciphertext.slice(0, at) + (ciphertext[at] === "A" ? "B" : "A") + ciphertext.slice(at + 1);
      expect(await refusal("Decrypt", { pkpId: PKP, ciphertext: changed }), `character ${at}`).to.equal(
        "decryption_failed",
      );
      expect(await refusal("Decrypt", { pkpId: PKP, ciphertext: ciphertext.slice(0, at) })).to.equal(
        "decryption_failed",
      );
    }
    expect(await refusal("Decrypt", { pkpId: PKP, ciphertext: `${ciphertext}A` })).to.equal("decryption_failed");
  });

  it("separate accounts and PKPs", async () => {
    const second = keyring.mintPkp(ACCOUNT);
    const chain = new ScriptedChain((pkp) => decision({ derivationPath: pkp === PKP ? minted.path : second.path }));
    const foreign = new ScriptedChain(() => decision({ accountId: `0x${"a2".repeat(32)}` as AccountId }));
    const ciphertext = await value("Encrypt", { pkpId: PKP, message: "a secret" });
    expect(await refusal("Decrypt", { pkpId: second.address, ciphertext }, opsOver(chain))).to.equal(
      "decryption_failed",
    );
    await refusal("Decrypt", { pkpId: PKP, ciphertext }, opsOver(foreign)).then(
      (code) => expect(code).to.not.equal("allowed"),
      (error: unknown) => expect(error).to.be.instanceOf(KeywrightError),
    );
  });
});

describe("private keys and action identities", () => {
  it("getPrivateKey returns the PKP's key and registers it with the tripwire", async () => {
    const given = await answer("getPrivateKey", { pkpId: PKP });
    if (!given.ok) throw new Error(given.message);
    const key = JSON.parse(given.value) as string;
    expect(computeAddress(key)).to.equal(PKP);
    expect(given.exposes).to.deep.equal([key]);
  });

  it("getPrivateKey is refused when disabled, and for an action listed only by the wildcard", async () => {
    expect(
      await refusal("getPrivateKey", { pkpId: PKP }, opsOver(new ScriptedChain(known), { privateKeysAllowed: false })),
    ).to.equal("permission_denied");
    const byWildcard = new ScriptedChain(() => decision({ actionByName: false }));
    expect(await refusal("getPrivateKey", { pkpId: PKP }, opsOver(byWildcard))).to.equal("permission_denied");
    expect(await refusal("signMessage", { pkpId: PKP, message: "" }, opsOver(byWildcard))).to.equal("allowed");
  });

  it("an action reads its own private key and any action's public key, each bound to the CID", async () => {
    const own = await value("getActionPrivateKey", {});
    expect(await value("getActionWalletAddress", { ipfsId: CID })).to.equal(computeAddress(own));
    expect(await value("getActionPublicKey", { ipfsId: CID })).to.equal(SigningKey.computePublicKey(own));
    expect(await value("getActionWalletAddress", { ipfsId: OTHER_CID })).to.not.equal(computeAddress(own));
    expect(await refusal("getActionPrivateKey", { ipfsId: OTHER_CID })).to.equal("invalid_arguments");
    expect(await refusal("getActionPublicKey", { ipfsId: "nonsense" })).to.equal("invalid_arguments");
  });
});
