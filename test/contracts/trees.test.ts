// Every mutating function has a file with its tree.
import { expect } from "chai";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { ethers } from "hardhat";

// one tree, admin.test.ts
const ADMIN = [
  "acceptAdmin",
  "addApiPayer",
  "cancelAdminApiPayer",
  "cancelAdminProposal",
  "proposeAdmin",
  "removeApiPayer",
  "setAdminApiPayer",
];

describe("Trees", () => {
  it("exist for every mutating function, and for no function that was removed", async () => {
    const { interface: abi } = await ethers.getContractFactory("AccountManager");
    const writes: string[] = [];
    abi.forEachFunction((fragment) => {
      if (!fragment.constant && !ADMIN.includes(fragment.name)) writes.push(fragment.name);
    });
    const files = readdirSync(join(__dirname, "functions")).map((file) => file.replace(".test.ts", ""));
    expect(files.sort()).to.deep.equal([...writes, "admin"].sort());
  });
});
