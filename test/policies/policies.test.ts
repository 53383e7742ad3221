/** Policies are generated from templates; one policy has one text, and so one CID, which groups on chain list. */
import { expect } from "chai";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makePolicy, readPolicy } from "../../client/policies";
import { POLICY_TEMPLATES } from "../../client/policyTemplates";
import { ALICE, BOB } from "../support/policies";

const ROOT = join(__dirname, "..", "..");
const FOLDER = join(ROOT, "policies");
const TABLE = join(ROOT, "client", "policyTemplates.ts");

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
});
