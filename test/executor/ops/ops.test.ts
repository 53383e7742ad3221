/** What an op of a run may use: one contract call per PKP, held until the run ends; no signature without permission. */
import { expect } from "chai";
import fc from "fast-check";
import type { DecidedAhead } from "../../../executor/access/authorize";
import type { Chain } from "../../../executor/chain/chain";
import { createOps } from "../../../executor/ops/ops";
import type { OpHandler } from "../../../executor/sandbox/types";
import type { Decision } from "../../../protocol/decision";
import { KeywrightError } from "../../../protocol/errors";
import type { AccountId, DerivationPath, PkpId } from "../../../protocol/ids";
import { RUN_LIMITS } from "../../../protocol/limits";
import { OP_NAMES } from "../../../protocol/ops";
import { SEED, count } from "../../support/counts";
import {
  ACCOUNT,
  CID,
  PKP,
  ScriptedChain,
  UNKNOWN,
  answer,
  decision,
  keyring,
  known,
  noBudgets,
  ops,
  opsOver,
  refusal,
  run,
  value,
} from "../../support/scriptedOps";

describe("the PKPs a run has used", () => {
  it("are reported once an op has used them, and not when they are refused or another account's", async () => {
    const used: PkpId[] = [];
    const stolen = decision({ derivationPath: keyring.mintPkp(ACCOUNT).path });
    const wildcard = new ScriptedChain((pkp) => (pkp === UNKNOWN ? known(pkp) : decision({ actionByName: false })));
    const chain = wildcard as unknown as Chain;
    const parts = { chain, keyring, privateKeysAllowed: true, limits: RUN_LIMITS, budgets: noBudgets };
    const handler = createOps(parts, run, undefined, (pkp) => used.push(pkp));
    expect(await refusal("signMessage", { pkpId: UNKNOWN, message: "" }, handler)).to.equal("permission_denied");
    expect(await refusal("getPrivateKey", { pkpId: PKP }, handler)).to.equal("permission_denied");
    // The contract lets any account register any address.
    const strangers = createOps({ ...parts, chain: new ScriptedChain(() => stolen) as never }, run, undefined, (pkp) =>
      used.push(pkp),
    );
    for (const [name, args] of [
      ["signMessage", { message: "" }],
      ["Encrypt", { message: "m" }],
      ["getPrivateKey", {}],
    ] as const)
      expect(await refusal(name, { pkpId: PKP, ...args }, strangers)).to.equal("permission_denied");
    expect(used).to.deep.equal([]);
    await value("signMessage", { pkpId: PKP, message: "" }, handler);
    await value("Encrypt", { pkpId: PKP, message: "m" }, handler);
    expect(new Set(used)).to.deep.equal(new Set([PKP]));
  });
});

describe("the permission of an op", () => {
  it("is asked once for each PKP and holds until the run ends", async () => {
    const chain = new ScriptedChain(known);
    const handler = opsOver(chain);
    await Promise.all([1, 2, 3].map(() => value("signMessage", { pkpId: PKP, message: "" }, handler)));
    await value("Encrypt", { pkpId: PKP.toLowerCase(), message: "" }, handler);
    expect(chain.asked).to.deep.equal([PKP]);
  });

  it("is not asked again for the PKP the run was authorised with, nor for an op without a PKP", async () => {
    const chain = new ScriptedChain(known);
    const handler = opsOver(chain, { pkpId: PKP });
    await value("signMessage", { pkpId: PKP, message: "" }, handler);
    await value("getActionWalletAddress", { ipfsId: CID }, handler);
    expect(chain.asked).to.deep.equal([]);
  });

  it("may have come with the run's permission: a fresh answer is used, an old one is asked for again", async () => {
    const askedOf = async (ahead: Partial<DecidedAhead>): Promise<[string, number]> => {
      const chain = new ScriptedChain(known);
      const decided = { pkpId: PKP, decision: decision(), askedAt: performance.now(), ...ahead };
      const handler = opsOver(chain, { ahead: decided });
      const first = await refusal("signMessage", { pkpId: PKP, message: "" }, handler);
      expect(await refusal("signMessage", { pkpId: PKP, message: "" }, handler)).to.equal(first);
      return [first, chain.asked.length];
    };
    expect(await askedOf({})).to.deep.equal(["allowed", 0]);
    expect(await askedOf({ askedAt: performance.now() - 1_500 })).to.deep.equal(["allowed", 1]);
    expect(await askedOf({ pkpId: UNKNOWN })).to.deep.equal(["allowed", 1]);
    const denied = decision({ allowed: false, reason: "PkpNotPermitted" });
    expect(await askedOf({ decision: denied })).to.deep.equal(["permission_denied", 0]);
    const elsewhere = decision({ accountId: `0x${"a2".repeat(32)}` as AccountId });
    expect((await askedOf({ decision: elsewhere }).catch((error: Error) => [error.message]))[0]).to.not.equal(
      "allowed",
    );
  });

  it("is denied for a PKP the contract denies, or whose path or address is another one's", async () => {
    expect(await refusal("signMessage", { pkpId: UNKNOWN, message: "" })).to.equal("permission_denied");
    const lying = (overrides: Partial<Decision>): OpHandler => opsOver(new ScriptedChain(() => decision(overrides)));
    const usage = keyring.mintUsageKey(ACCOUNT, () => undefined).path;
    const elsewhere = keyring.mintPkp(ACCOUNT).path;
    const foreign = keyring.mintPkp(`0x${"c3".repeat(32)}` as AccountId).path;
    for (const derivationPath of [undefined, `0x${"00".repeat(32)}` as DerivationPath, usage, elsewhere, foreign]) {
      expect(await refusal("signMessage", { pkpId: PKP, message: "" }, lying({ derivationPath }))).to.equal(
        "permission_denied",
      );
    }
  });

  it("limits the bytes to hash at a time: exactly the limit, and not one byte more", async () => {
    const ofBytes = (bytes: number, make: (filler: string) => object): string => {
      const empty = Buffer.byteLength(JSON.stringify(make("")));
      return JSON.stringify(make("x".repeat(bytes - empty)));
    };
    const typed = (filler: string): object => ({
      pkpId: PKP,
      domain: {},
      types: { M: [{ name: "text", type: "string" }] },
      message: { text: filler },
    });
    const codeOf = async (name: string, args: string): Promise<string> => {
      const given = await ops({ name, args });
      return given.ok ? "allowed" : given.code;
    };
    const message = (bytes: number): string => ofBytes(bytes, (filler) => ({ pkpId: PKP, message: filler }));
    expect(await codeOf("signMessage", message(RUN_LIMITS.signBytes))).to.equal("allowed");
    expect(await codeOf("signMessage", message(RUN_LIMITS.signBytes + 1))).to.equal("limit_exceeded");
    expect(await codeOf("signTypedData", ofBytes(RUN_LIMITS.typedDataBytes, typed))).to.equal("allowed");
    expect(await codeOf("signTypedData", ofBytes(RUN_LIMITS.typedDataBytes + 1, typed))).to.equal("limit_exceeded");
    expect(await codeOf("Encrypt", message(RUN_LIMITS.signBytes + 1))).to.equal("allowed");
  });

  it("is an error of the service when the chain cannot be read; the next op asks again", async () => {
    let up = false;
    const chain = new ScriptedChain((pkp) => (up ? known(pkp) : new KeywrightError("chain_unavailable", "down")));
    const handler = opsOver(chain);
    const failed = await answer("signMessage", { pkpId: PKP, message: "" }, handler).catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(KeywrightError);
    up = true;
    expect(await refusal("signMessage", { pkpId: PKP, message: "" }, handler)).to.equal("allowed");
  });

  it("never throws any other error and never signs on random input", async () => {
    const names = fc.constantFrom(
      ...OP_NAMES.filter((name) => name !== "getActionPrivateKey"), // which takes nothing, and so cannot be wrong
      "constructor",
      "__proto__",
    );
    await fc.assert(
      fc.asyncProperty(names, fc.oneof(fc.json(), fc.string()), async (name, args) => {
        const given = await ops({ name, args });
        expect(given.ok).to.equal(false);
      }),
      { seed: SEED, numRuns: count(200, 10_000) },
    );
  });
});
