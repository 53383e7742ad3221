/** Statements in the documents on trust refer to tests that exist. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { EXIT_CODES, STEPS } from "../../../client/verify";

const root = join(__dirname, "../../..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const rows = (text: string): string[] =>
  text.split("\n").filter((line) => line.startsWith("| ") && !line.includes("|---"));

describe("documents on trust", () => {
  for (const document of ["docs/threats.md", "docs/verify.md"]) {
    it(`${document} names only tests and folders that exist`, () => {
      const named = [...read(document).matchAll(/`((?:test|scripts|client)\/[A-Za-z0-9/._-]+)`/g)].map(
        ([, path]) => path ?? "",
      );
      expect(named).not.to.have.length(0);
      expect(named.filter((path) => !existsSync(join(root, path)))).to.deep.equal([]);
    });
  }

  it("docs/threats.md names a test for every statement", () => {
    const [, promises = ""] = read("docs/threats.md").split("## Promises, and the tests that back them");
    const [table = ""] = promises.split("## What is not promised");
    const promised = rows(table).filter((row) => !row.startsWith("| **") && !row.startsWith("| Promise"));
    expect(promised.length).to.be.greaterThan(20);
    expect(promised.filter((row) => !row.includes("`test/"))).to.deep.equal([]);
  });

  it("docs/verify.md explains every outcome, and every step in the order of the report", () => {
    const text = read("docs/verify.md");
    for (const code of Object.values(EXIT_CODES)) expect(text).to.contain(`| ${code} |`);
    const [, section = ""] = text.split("## The steps");
    const explained = rows(section.split("## ")[0] ?? "").slice(1);
    expect(explained.map((row) => row.split("|")[1]?.trim())).to.deep.equal(Object.values(STEPS));
  });
});
