/**
 * Policies: one text for one policy, and no input gets a signature outside it. The oracle decodes what was signed with
 * ethers and does not use the template.
 */
import { expect } from "chai";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";
import * as fc from "fast-check";
import { AbiCoder, Interface, Transaction, Wallet, ethers, id, type TransactionLike } from "ethers";
import { makePolicy, readPolicy, type Policy } from "../../client/policies";
import { POLICY_TEMPLATES } from "../../client/policyTemplates";
import { count } from "../support/counts";
import { answering, responseOf } from "../support/sandbox";

const ROOT = join(__dirname, "..", "..");
const FOLDER = join(ROOT, "policies");
const TABLE = join(ROOT, "client", "policyTemplates.ts");

const PKP = Wallet.createRandom().address;
const [ALICE, BOB, MALLORY] = ["a1", "b0", "66"].map((byte) => `0x${byte.repeat(20)}`) as [string, string, string];
const APPROVERS = [Wallet.createRandom(), Wallet.createRandom(), Wallet.createRandom()];

interface Signed {
  readonly name: "signTransaction" | "signTypedData";
  readonly args: Record<string, unknown>;
}

/** Runs a policy's code as a script with these parameters, and returns what it asked to be signed. */
function evaluator(policy: Policy): (params: unknown, hour?: number) => Promise<{ signed: Signed[]; error?: string }> {
  const script = new vm.Script(`${policy.code}\n;main`);
  return async (params, hour = 12) => {
    const signed: Signed[] = [];
    const Actions = {
      signTransaction: async (args: Signed["args"]) => signed.push({ name: "signTransaction", args }),
      signTypedData: async (args: Signed["args"]) => signed.push({ name: "signTypedData", args }),
    };
    class Clock extends Date {
      override getUTCHours(): number {
        return hour;
      }
    }
    const main = script.runInNewContext({ ethers, Actions, Date: Clock }) as (params: unknown) => Promise<unknown>;
    try {
      await main(JSON.parse(JSON.stringify(params)) as unknown);
      return { signed };
    } catch (error) {
      return { signed, error: String((error as Error).message) };
    }
  };
}

/** Any JSON value, biased towards nearly valid ones. */
const odd = fc.oneof(
  fc.constantFrom<unknown>(
    0,
    1,
    -1,
    1.5,
    "0",
    "00",
    "1",
    "0x1",
    "0x01",
    "-1",
    "1e3",
    " 1",
    "1 ",
    "",
    null,
    true,
    [],
    {},
    ["1"],
    "31337",
    31337,
    "0x7a69",
    [31337],
    ALICE,
    BOB,
    MALLORY,
    [ALICE],
    ALICE.toUpperCase().replace("0X", "0x"),
    `${ALICE} `,
    "alice.eth",
    "0x",
    "0x00",
    "100",
    "101",
    1e30,
    "115792089237316195423570985008687907853269984665640564039457584007913129639936",
  ),
  fc.jsonValue({ maxDepth: 2 }),
  fc.bigInt({ min: 0n, max: 2n ** 260n }).map(String),
);

const transactionOf = (signed: Signed): Transaction => {
  const { type, nonce, ...rest } = signed.args["transaction"] as TransactionLike & { type: string; nonce: string };
  const { from: _, ...fields } = rest;
  return Transaction.from({ ...fields, type: Number(type), nonce: Number(nonce) });
};

describe("policies", function () {
  this.timeout(120_000);

  it("equal the templates of policies/ (KEYWRIGHT_UPDATE=1 writes them)", () => {
    const fresh = Object.fromEntries(
      readdirSync(FOLDER)
        .filter((file) => file.endsWith(".js"))
        .sort()
        .map((file) => [file.replace(/\.js$/, ""), readFileSync(join(FOLDER, file), "utf8")]),
    );
    if (process.env["KEYWRIGHT_UPDATE"] === "1") {
      const head =
        "/** Written from policies/ by KEYWRIGHT_UPDATE=1 npx mocha test/policies/policies.test.ts; never by hand. */";
      writeFileSync(TABLE, `${head}\nexport const POLICY_TEMPLATES = ${JSON.stringify(fresh, null, 2)} as const;\n`);
      execFileSync("npx", ["prettier", "--write", TABLE]);
    } else expect(POLICY_TEMPLATES).to.deep.equal(fresh);
  });

  it("have one text whatever the order, case or repetition of their parameters, and are parsed back", async () => {
    const one = await makePolicy("transfer-limits", { chain: 1, to: [ALICE, BOB], max: "5" });
    const other = await makePolicy("transfer-limits", {
      max: 5,
      to: [BOB.toUpperCase().replace("0X", "0x"), ALICE, ALICE],
      chain: "1",
    });
    expect(other).to.deep.equal(one);
    expect((await readPolicy(one.code))?.parameters).to.deep.equal(one.parameters);
    expect(await readPolicy(one.code.replace("refuse(", "void ("))).to.equal(undefined);
    expect((await makePolicy("transfer-limits", { chain: 1, to: [ALICE, BOB], max: "6" })).cid).to.not.equal(one.cid);
  });

  it("keep their CIDs: groups on chain list them", async () => {
    const { cid } = await makePolicy("transfer-limits", { chain: 1, to: [ALICE], max: 1 });
    expect(cid).to.equal(readFileSync(join(__dirname, "pinned.txt"), "utf8").trim());
  });

  it("refuse empty or contradictory parameters", async () => {
    const wrong: [Parameters<typeof makePolicy>[0], object][] = [
      ["transfer-limits", { chain: 0, to: [ALICE], max: 1 }],
      ["transfer-limits", { chain: 1, to: [], max: 1 }],
      ["transfer-limits", { chain: 1, to: ["alice.eth"], max: 1 }],
      ["transfer-limits", { chain: 1, to: [ALICE], max: -1 }],
      ["transfer-limits", { chain: 1, to: [ALICE], max: 1, extra: 1 }],
      ["transfer-limits", { chain: 1, to: [ALICE], max: 1, hours: [9, 9] }],
      ["transfer-limits", { chain: 1, to: [ALICE], max: 1, approvers: { of: [ALICE, ALICE], threshold: 2 } }],
      ["contract-calls", { chain: 1, calls: [{ to: ALICE, function: "transfer(address,uint256)", args: [{}] }] }],
      ["contract-calls", { chain: 1, calls: [{ to: ALICE, function: "transfer", args: [] }] }],
      ["typed-data", { domains: [{}], primaryType: "A", types: { A: [{ name: "a", type: "bool" }] } }],
      ["typed-data", { domains: [{ name: "x" }], primaryType: "B", types: { A: [{ name: "a", type: "bool" }] } }],
      [
        "typed-data",
        {
          domains: [{ name: "x" }],
          primaryType: "A",
          types: { A: [{ name: "a", type: "bool" }] },
          fields: { b: { in: ["true"] } },
        },
      ],
    ];
    for (const [template, parameters] of wrong) {
      const code = await makePolicy(template, parameters as never).then(
        () => "made",
        (error: { code?: string }) => error.code,
      );
      expect(code, JSON.stringify(parameters)).to.equal("invalid_argument");
    }
  });

  describe("transfer-limits", () => {
    const valid = {
      type: 2,
      chainId: 31337,
      nonce: 1,
      gasLimit: 21_000,
      to: ALICE,
      value: "100",
      maxFeePerGas: "1000",
      maxPriorityFeePerGas: "1",
    };

    it("signs what is allowed, in the real sandbox", async () => {
      const { code } = await makePolicy("transfer-limits", { chain: 31337, to: [ALICE, BOB], max: "100" });
      const params = { pkpId: PKP, transaction: valid };
      expect(await responseOf(code, { params, ops: answering({ signTransaction: "0x01" }) })).to.equal("0x01");
    });

    it("signs nothing else, for any input", async () => {
      const evaluate = evaluator(
        await makePolicy("transfer-limits", { chain: 31337, to: [ALICE, BOB], max: "100", maxFee: "1000000000000" }),
      );
      const names = [
        ...Object.keys(valid),
        "data",
        "from",
        "gasPrice",
        "accessList",
        "authorizationList",
        "blobVersionedHashes",
        "maxFeePerBlobGas",
        "TO",
        "__proto__",
        "signature",
      ];
      const changes = fc.dictionary(fc.constantFrom(...names), odd, { maxKeys: 4 });
      let allowed = 0;
      await fc.assert(
        fc.asyncProperty(changes, odd, fc.boolean(), async (change, other, whole) => {
          const { signed } = await evaluate(
            whole
              ? { pkpId: PKP, transaction: { ...valid, ...change } }
              : { pkpId: PKP, transaction: other, ...change },
          );
          for (const one of signed) {
            const { chainId, to, value, data, gasLimit, maxFeePerGas, gasPrice, type } = transactionOf(one);
            expect([chainId, data]).to.deep.equal([31337n, "0x"]);
            expect([ALICE, BOB]).to.include(to?.toLowerCase());
            expect(
              value <= 100n &&
                [0, 1, 2].includes(type ?? -1) &&
                gasLimit * (maxFeePerGas ?? gasPrice ?? 0n) <= 10n ** 12n,
            ).to.equal(true);
            allowed += 1;
          }
        }),
        { numRuns: count(300, 50_000), seed: 17 },
      );
      expect(allowed, "the fuzzer reaches the allowed, too").to.be.greaterThan(10);
    });

    it("applies its hours, also across midnight", async () => {
      const day = evaluator(
        await makePolicy("transfer-limits", { chain: 31337, to: [ALICE], max: 100, hours: [9, 17] }),
      );
      const night = evaluator(
        await makePolicy("transfer-limits", { chain: 31337, to: [ALICE], max: 100, hours: [22, 6] }),
      );
      for (let hour = 0; hour < 24; hour += 1) {
        expect((await day({ pkpId: PKP, transaction: valid }, hour)).signed.length).to.equal(
          hour >= 9 && hour < 17 ? 1 : 0,
        );
        expect((await night({ pkpId: PKP, transaction: valid }, hour)).signed.length).to.equal(
          hour >= 22 || hour < 6 ? 1 : 0,
        );
      }
    });

    it("requires the stated number of approvers: of this transaction, by this PKP, under this policy, each counted once", async () => {
      const of = APPROVERS.map(({ address }) => address);
      const policy = await makePolicy("transfer-limits", {
        chain: 31337,
        to: [ALICE],
        max: 100,
        approvers: { of, threshold: 2 },
      });
      const evaluate = evaluator(policy);
      const text =
        (await evaluate({ pkpId: PKP, transaction: valid, approvals: [] })).error?.split("sign this text:\n")[1] ?? "";
      const sign = (message = text): string[] => APPROVERS.map((wallet) => wallet.signMessageSync(message));
      const [first = "", second = "", third = ""] = sign();
      const others = [
        text.replace("0x", "0y"),
        text.replace(/under.*/, `under ${id("other")}`),
        text.replace(PKP.toLowerCase(), MALLORY),
      ].flatMap((message) => sign(message));
      const stranger = Wallet.createRandom().signMessageSync(text);
      const accepted = async (approvals: unknown, transaction: object = valid): Promise<boolean> =>
        (await evaluate({ pkpId: PKP, transaction, approvals })).signed.length > 0;
      expect(await accepted([first, third])).to.equal(true);
      expect(await accepted([second, stranger, first])).to.equal(true);
      for (const approvals of [
        [first, first],
        [first, first.toUpperCase().replace("0X", "0x")],
        [first, stranger],
        others,
        [first],
        "x",
        undefined,
        {},
        [[first], [second]],
        Array(65).fill(second),
      ]) {
        expect(await accepted(approvals), JSON.stringify(approvals)).to.equal(false);
      }
      expect(await accepted([first, second], { ...valid, value: "99" }), "another transaction").to.equal(false);
    });
  });

  describe("contract-calls", () => {
    const token = new Interface([
      "function transfer(address to, uint256 amount)",
      "function approve(address,uint256)",
      "function batch(address[] to, bytes data)",
    ]);
    const calls = [
      { to: MALLORY, function: "transfer(address,uint256)", args: [{ in: [ALICE, BOB] }, { min: 1, max: 1000 }] },
      { to: MALLORY, function: "batch(address[],bytes)", args: [{}, {}] },
    ];
    const base = {
      type: 2,
      chainId: 1,
      nonce: 0,
      gasLimit: 50_000,
      to: MALLORY,
      maxFeePerGas: 1,
      maxPriorityFeePerGas: 1,
    };
    const transfer = (to: string, amount: bigint): string => token.encodeFunctionData("transfer", [to, amount]);

    it("signs only the canonical form of allowed arguments: fuzzed bytes, dirty bits, tails, lengths", async () => {
      const evaluate = evaluator(await makePolicy("contract-calls", { chain: 1, calls }));
      const good = transfer(ALICE, 1000n);
      const flips = fc.array(fc.tuple(fc.nat(good.length - 3), fc.constantFrom(..."0123456789abcdefABCDEF")), {
        maxLength: 3,
      });
      const mutated = fc
        .tuple(flips, fc.constantFrom("", "00", "0000", "ff".repeat(32)), fc.nat(8))
        .map(([changes, tail, cut]) => {
          const letters = [...good];
          for (const [at, letter] of changes) letters[at + 2] = letter;
          return letters.slice(0, letters.length - (tail === "" ? cut : 0)).join("") + tail;
        });
      const amounts = fc
        .tuple(fc.constantFrom(ALICE, BOB, MALLORY), fc.bigInt({ min: 0n, max: 2000n }))
        .map(([to, amount]) => transfer(to, amount));
      let allowed = 0;
      await fc.assert(
        fc.asyncProperty(fc.oneof(mutated, amounts, odd), odd, async (data, value) => {
          const { signed } = await evaluate({
            pkpId: PKP,
            transaction: { ...base, data, ...(typeof value === "number" ? { value } : {}) },
          });
          for (const one of signed) {
            const transaction = transactionOf(one);
            const [to, amount] = AbiCoder.defaultAbiCoder().decode(
              ["address", "uint256"],
              `0x${transaction.data.slice(10)}`,
            ) as unknown as [string, bigint];
            expect(transaction.data).to.equal(transfer(to, amount));
            expect([ALICE, BOB]).to.include(to.toLowerCase());
            expect(
              amount >= 1n && amount <= 1000n && transaction.value === 0n && transaction.to?.toLowerCase() === MALLORY,
            ).to.equal(true);
            allowed += 1;
          }
        }),
        { numRuns: count(300, 50_000), seed: 18 },
      );
      expect(allowed).to.be.greaterThan(10);
    });

    it("refuses other functions, other contracts, and tails that overlap", async () => {
      const evaluate = evaluator(await makePolicy("contract-calls", { chain: 1, calls }));
      const signs = async (more: object): Promise<boolean> =>
        (await evaluate({ pkpId: PKP, transaction: { ...base, ...more } })).signed.length > 0;
      expect(await signs({ data: transfer(ALICE, 1n) })).to.equal(true);
      expect(await signs({ data: token.encodeFunctionData("batch", [[ALICE], "0x1234"]) })).to.equal(true);
      expect(await signs({ data: token.encodeFunctionData("approve", [ALICE, 1n]) })).to.equal(false);
      expect(await signs({ data: transfer(ALICE, 1n), to: ALICE })).to.equal(false);
      const head = id("batch(address[],bytes)").slice(0, 10);
      const word = (value: number): string => value.toString(16).padStart(64, "0");
      expect(await signs({ data: `${head}${word(64)}${word(64)}${word(0)}` }), "both tails in one place").to.equal(
        false,
      );
      expect(await signs({ data: head }), "no arguments").to.equal(false);
    });
  });

  describe("typed-data", () => {
    const types = {
      Permit: [
        { name: "owner", type: "address" },
        { name: "spender", type: "address" },
        { name: "value", type: "uint256" },
        { name: "tags", type: "string[]" },
        { name: "inner", type: "Inner" },
      ],
      Inner: [{ name: "flag", type: "bool" }],
    };
    const domain = { name: "Token", version: "1", chainId: 1, verifyingContract: MALLORY };
    const message = { owner: PKP, spender: ALICE, value: "5", tags: ["a"], inner: { flag: true } };
    const policy = () =>
      makePolicy("typed-data", {
        domains: [domain],
        primaryType: "Permit",
        types,
        fields: {
          spender: { in: [ALICE] },
          value: { max: 10 },
          tags: { in: ["a", "b"] },
          "inner.flag": { in: ["true"] },
        },
      });

    it("signs what is allowed, and ignores the caller's own EIP712Domain", async () => {
      const evaluate = evaluator(await policy());
      const given = {
        pkpId: PKP,
        domain: { ...domain, chainId: "0x1", verifyingContract: MALLORY.toUpperCase().replace("0X", "0x") },
        types: { ...types, EIP712Domain: [] },
        message,
      };
      expect((await evaluate(given)).signed).to.have.length(1);
    });

    it("signs nothing else, for any domain, types or message", async () => {
      const evaluate = evaluator(await policy());
      const change = (of: object): fc.Arbitrary<object> =>
        fc
          .dictionary(
            fc.constantFrom(...Object.keys(of), "salt", "extra", "__proto__"),
            fc.oneof(
              odd,
              fc.constantFrom<unknown>(["b", "a"], ["c"], { flag: "true" }, { flag: false }, types.Inner, [
                { name: "owner", type: "uint256" },
              ]),
            ),
            { maxKeys: 2 },
          )
          .map((more) => ({ ...of, ...more }));
      let allowed = 0;
      await fc.assert(
        fc.asyncProperty(
          fc.oneof(fc.constant(domain), change(domain)),
          fc.oneof(fc.constant(types), change(types)),
          change(message),
          fc.constantFrom(undefined, "Permit", "Inner", 1),
          async (asked, given, fields, primaryType) => {
            const { signed } = await evaluate({
              pkpId: PKP,
              domain: asked,
              types: given,
              message: fields,
              primaryType,
            });
            for (const { args } of signed) {
              const {
                domain: used,
                types: how,
                message: what,
              } = args as unknown as { domain: typeof domain; types: typeof types; message: typeof message };
              expect(ethers.TypedDataEncoder.hashDomain(used)).to.equal(ethers.TypedDataEncoder.hashDomain(domain));
              expect(how).to.deep.equal(types);
              expect(what.spender.toLowerCase()).to.equal(ALICE);
              expect(
                BigInt(what.value) <= 10n && what.tags.every((tag) => ["a", "b"].includes(tag)) && what.inner.flag,
              ).to.equal(true);
              expect(Object.keys(what).sort()).to.deep.equal(Object.keys(message).sort());
              allowed += 1;
            }
          },
        ),
        { numRuns: count(300, 50_000), seed: 19 },
      );
      expect(allowed).to.be.greaterThan(10);
    });
  });
});
