/** CONTRIBUTING's table of common changes: the files exist, and what it calls a table is one. */
import { expect } from "chai";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { OP_ARGUMENTS } from "../../executor/ops/arguments";
import { OP_NAMES, OPS, opNames, PKP_OP_NAMES } from "../../protocol/ops";

const ROOT = join(__dirname, "..", "..");
const section = /## Ten common changes\n([\s\S]*?)\n## /.exec(readFileSync(join(ROOT, "CONTRIBUTING.md"), "utf8"))?.[1];
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

describe("CONTRIBUTING's common changes", () => {
  it("name files that exist", () => {
    const named = [...(section ?? "").matchAll(/`([\w./]+\/[\w./]+)`/g)].map(([, file = ""]) => file);
    expect(named.length).to.be.above(25);
    expect(named.filter((file) => !existsSync(join(ROOT, file)))).to.deep.equal([]);
  });

  it("an op: the schemas follow the table, and no other file lists the ops", () => {
    expect(Object.keys(OP_ARGUMENTS)).to.have.members(OP_NAMES);
    const others = ["executor/sandbox/session.ts", "executor/sandbox/types.ts", "executor/sandbox/guest/actions.ts"];
    for (const file of [...others, "dashboard/screens/pkps/PkpOps.tsx", "protocol/limits.ts"])
      expect(read(file), file).to.not.match(/signEd25519|signSchnorr/);
  });

  it("an op: each bit is one bit, used once, in the table's order", () => {
    expect(PKP_OP_NAMES.map((name) => OPS[name].denial.bit)).to.deep.equal(
      PKP_OP_NAMES.map((_name, index) => 1n << BigInt(index)),
    );
    for (const name of PKP_OP_NAMES) expect(opNames(OPS[name].denial.bit)).to.deep.equal([name]);
  });
});
