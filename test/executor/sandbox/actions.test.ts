import { expect } from "chai";
import type { OpCall } from "../../../executor/sandbox/types";
import { OP_NAMES } from "../../../protocol/ops";
import { run, valueOf } from "../../support/sandbox";

describe("the Actions SDK", () => {
  it("is one object under three names", async () => {
    expect(
      await valueOf(
        `Actions === LitActions && Actions === Lit.Actions && Object.isFrozen(Actions) && Object.isFrozen(Lit)`,
      ),
    ).to.equal(true);
  });

  it("has every op the keyholder serves", async () => {
    expect(
      await valueOf(`${JSON.stringify(OP_NAMES)}.filter((name) => typeof Actions[name] !== "function")`),
    ).to.deep.equal([]);
  });

  it("passes exactly the fields of an op, bigints as text and bytes as hex", async () => {
    const seen: OpCall[] = [];
    const ops = (call: OpCall) => (seen.push(call), { ok: true as const, value: '"0xsigned"' });
    const code = `async function main() {
      const transaction = { value: 10n ** 20n, data: new Uint8Array([1, 255]), nested: [{ gas: 1n }] };
      return [
        await Actions.signTransaction({ pkpId: "0xp", transaction }),
        await Actions.getLitActionPublicKey({ ipfsId: "Qm" }),
        await Actions.getLitActionPrivateKey(),
      ];
    }`;
    expect((await run(code, { ops })).response).to.equal('["0xsigned","0xsigned","0xsigned"]');
    expect(seen.map(({ name, args }) => [name, JSON.parse(args)])).to.deep.equal([
      [
        "signTransaction",
        { pkpId: "0xp", transaction: { value: "100000000000000000000", data: "0x01ff", nested: [{ gas: "1" }] } },
      ],
      ["getActionPublicKey", { ipfsId: "Qm" }],
      ["getActionPrivateKey", {}],
    ]);
  });

  const mistakes: [string, string][] = [
    [`Actions.signMessage()`, "Actions.signMessage({ pkpId, message }) takes one object"],
    [`Actions.signMessage({ pkpId: "0x1" })`, "message is missing"],
    [`Actions.signMessage({ pkpId: "0x1", message: "m", sigName: "s" })`, "unknown field sigName"],
    [`Actions.setResponse("x")`, "Actions.setResponse takes { response }"],
  ];
  for (const [call, message] of mistakes) {
    it(`${call} names the invalid argument`, async () => {
      expect((await run(`async function main() { await ${call}; }`)).error?.message).to.contain(message);
    });
  }

  for (const name of ["decryptAndCombine", "checkConditions", "getPermissions", "claimKey", "encrypt"]) {
    it(`${name} of older systems names its replacement`, async () => {
      const { error } = await run(`async function main() { await LitActions.${name}({}); }`);
      expect(error?.code).to.equal("threw");
      expect(error?.message).to.match(new RegExp(`^Actions.${name} does not exist here. Use .{8,}\\.$`));
    });
  }

  describe("an op that is refused", () => {
    const refusing = (code: string) => () => ({ ok: false as const, code, message: "no group lists it" });

    it("is permission_denied when the action does not catch it", async () => {
      const { error } = await run(
        `async function main() { await Actions.signMessage({ pkpId: "0x1", message: "m" }); }`,
        {
          ops: refusing("permission_denied"),
        },
      );
      expect(error).to.include({ code: "permission_denied", message: "no group lists it" });
    });

    for (const [when, code] of Object.entries({
      "is not awaited yet": `async function main() {
        const refused = Actions.signMessage({ pkpId: "0x1", message: "m" });
        await new Promise((done) => setTimeout(done, 100));
        await refused;
      }`,
      "is awaited at a module's top level": `await Actions.signMessage({ pkpId: "0x1", message: "m" });
      export default 1;`,
    }))
      it(`keeps its code where it ${when}`, async () => {
        const { error } = await run(code, { ops: refusing("permission_denied") });
        expect(error).to.include({ code: "permission_denied", message: "no group lists it" });
      });

    it("is an ordinary error with its code when the action catches it", async () => {
      const code = `async function main() {
        try {
          await Actions.getPrivateKey({ pkpId: "0x1" });
        } catch (error) {
          return [error instanceof Error, error.code, error.message];
        }
      }`;
      expect((await run(code, { ops: refusing("permission_denied") })).response).to.equal(
        '[true,"permission_denied","no group lists it"]',
      );
    });

    it("cannot be forged by an action that constructs the error", async () => {
      const { error } = await run(
        `async function main() { throw Object.assign(new Error("mine"), { code: "permission_denied" }); }`,
      );
      expect(error).to.include({ code: "threw", message: "mine" });
    });

    it("with any other code is the action's own error", async () => {
      const { error } = await run(
        `async function main() { await Actions.signDigest({ pkpId: "0x1", digest: "0x" }); }`,
        { ops: refusing("invalid_value") },
      );
      expect(error?.code).to.equal("threw");
    });
  });

  it("an op that fails in the keyholder is a service fault, without details for the guest", async () => {
    const ops = () => Promise.reject(new Error("the secret internals"));
    const outcome = await run(
      `async function main() { try { await Actions.signMessage({ pkpId: "0x1", message: "m" }); } catch {} }`,
      { ops },
    );
    expect(outcome).to.include({ fault: "service" });
    expect(outcome.error?.code).to.equal("sandbox_crashed");
    expect(JSON.stringify(outcome)).to.not.contain("secret internals");
  });

  it("showImportDetails lists nothing without imports", async () => {
    expect(await valueOf(`Actions.showImportDetails()`)).to.deep.equal([]);
  });
});
