/** Policies are generated from templates; one policy has one text, and so one CID, which groups on chain list. */
import { expect } from "chai";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Interface } from "ethers";
import { makePolicy, readPolicy } from "../../client/policies";
import { POLICY_TEMPLATES } from "../../client/policyTemplates";
import { ALICE, BOB, PKP, evaluator } from "../support/policies";

const ROOT = join(__dirname, "..", "..");
const FOLDER = join(ROOT, "policies");
const TABLE = join(ROOT, "client", "policyTemplates.ts");

/** The last letter's case is not that of EIP-55. */
const WRONG_CHECKSUM = "0x70997970C51812dc3A010C7d01b50e0d17dc79c8";
const ANY_TRANSFER = { to: ALICE, function: "transfer(address,uint256)", args: [{}, {}] };

const CALLS = [
  { function: "transfer(adress,uint256)", args: [{}, {}] },
  { function: "transfer(address,,uint256)", args: [{}, {}, {}] },
  { function: "transfer(address,uint)", args: [{}, {}] },
  { function: "transfer(address,uint257)", args: [{}, {}] },
  { function: "f(bytes33)", args: [{}] },
  { function: "f((address,uint256)", args: [{}] },
  { function: "f(())", args: [{}] },
  { function: "f(address[0])", args: [{}] },
  { function: "f(address[])", args: [{ in: [ALICE] }] },
  { function: "f((address,bool))", args: [{ in: [ALICE] }] },
  { function: "transfer(address,uint256)", args: [{ max: 10 }, {}] },
  { function: "transfer(address,uint256)", args: [{ in: [WRONG_CHECKSUM] }, {}] },
  { function: "transfer(address,uint256)", args: [{ in: ["alice.eth"] }, {}] },
  { function: "transfer(address,uint256)", args: [{ in: [] }, {}] },
  { function: "transfer(address,uint256)", args: [{}, { min: -1 }] },
  { function: "transfer(address,uint256)", args: [{}, { in: ["0x10"] }] },
  { function: "transfer(address,uint256)", args: [{}, { min: 2, max: 1 }] },
  { function: "f(uint8)", args: [{ max: 256 }] },
  { function: "f(int256)", args: [{ max: 10 }] },
  { function: "f(int8)", args: [{ min: -129, max: 0 }] },
  { function: "f(bool)", args: [{ in: ["yes"] }] },
  { function: "f(bytes2)", args: [{ in: ["0xabc"] }] },
];

type Types = Record<string, { name: string; type: string }[]>;
const TYPES: readonly (readonly [types: Types, fields?: object])[] = [
  [{ A: [{ name: "a", type: "adress" }] }],
  [{ A: [{ name: "a", type: "B" }] }],
  [{ A: [{ name: "a", type: "uint" }] }],
  [{ A: [{ name: "a", type: "bool" }], B: [{ name: "b", type: "bool" }] }],
  [{ A: [{ name: "a", type: "A[]" }] }],
  [
    {
      A: [
        { name: "a", type: "bool" },
        { name: "a", type: "bool" },
      ],
    },
  ],
  [{ A: [{ name: "a", type: "constructor" }] }],
  [{ A: [{ name: "a", type: "toString[]" }] }],
  [{ A: [{ name: "a", type: "EIP712Domain" }], EIP712Domain: [{ name: "name", type: "string" }] }],
  [{ A: [{ name: "a", type: "address" }] }, { a: { max: 1 } }],
  [{ A: [{ name: "a", type: "address[]" }] }, { a: { in: [WRONG_CHECKSUM] } }],
  [{ A: [{ name: "a", type: "int64" }] }, { a: { max: 10 } }],
];

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

  it("compare a text as it is, and a signed number with both its bounds", async () => {
    const policy = await makePolicy("contract-calls", {
      chain: 1,
      calls: [{ to: ALICE, function: "f(string,int256,bytes)", args: [{ in: ["0xABCD"] }, { min: -5, max: 10 }, {}] }],
    });
    expect((await readPolicy(policy.code))?.parameters).to.deep.equal(policy.parameters);
    const signs = async (text: string, number: number): Promise<boolean> => {
      const data = new Interface(["function f(string,int256,bytes)"]).encodeFunctionData("f", [text, number, "0x"]);
      const fees = { maxFeePerGas: 1, maxPriorityFeePerGas: 1 };
      const transaction = { type: 2, chainId: 1, nonce: 0, gasLimit: 50_000, to: ALICE, data, ...fees };
      return (await evaluator(policy)({ pkpId: PKP, transaction })).signed.length > 0;
    };
    expect([await signs("0xABCD", -5), await signs("0xABCD", 10)]).to.deep.equal([true, true]);
    expect([await signs("0xabcd", 0), await signs("0xABCD", -99), await signs("0xABCD", 11)]).to.deep.equal([
      false,
      false,
      false,
    ]);
    const typed = await makePolicy("typed-data", {
      domains: [{ name: "x" }],
      primaryType: "A",
      types: { A: [{ name: "a", type: "string" }] },
      fields: { a: { in: ["0xABCD"] } },
    });
    const { types } = typed.parameters;
    const given = { pkpId: PKP, domain: { name: "x" }, types };
    expect((await evaluator(typed)({ ...given, message: { a: "0xABCD" } })).signed).to.have.length(1);
    expect((await evaluator(typed)({ ...given, message: { a: "0xabcd" } })).signed).to.have.length(0);
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
      ["transfer-limits", { chain: 1, to: [WRONG_CHECKSUM], max: 1 }],
      ["transfer-limits", { chain: 1, to: [ALICE], max: 1, approvers: { of: [WRONG_CHECKSUM], threshold: 1 } }],
      ...CALLS.map((call): [Parameters<typeof makePolicy>[0], object] => [
        "contract-calls",
        { chain: 1, calls: [{ to: ALICE, ...call }] },
      ]),
      ["contract-calls", { chain: 1, calls: [ANY_TRANSFER, { ...ANY_TRANSFER, args: [{ in: [BOB] }, {}] }] }],
      ["contract-calls", { chain: 1, calls: [{ ...ANY_TRANSFER, to: WRONG_CHECKSUM }] }],
      ["typed-data", { domains: [{ name: "x" }], primaryType: "valueOf", types: { A: [{ name: "a", type: "bool" }] } }],
      ...TYPES.map(([types, fields = {}]): [Parameters<typeof makePolicy>[0], object] => [
        "typed-data",
        { domains: [{ name: "x" }], primaryType: "A", types, fields },
      ]),
      [
        "typed-data",
        {
          domains: [{ verifyingContract: WRONG_CHECKSUM }],
          primaryType: "A",
          types: { A: [{ name: "a", type: "bool" }] },
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
});
