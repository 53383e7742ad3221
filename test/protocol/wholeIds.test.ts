/** Ids, hashes and paths are compared whole. The places that cut one are listed, with reasons, in docs/adr/0212. */
import { expect } from "chai";
import { readFileSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";

const ROOT = join(__dirname, "../..");
const FOLDERS = ["contracts", "protocol", "relayer", "executor", "client", "dashboard", "ingress"];
/** Cuts of hex words in TypeScript, casts of words in Solidity, and their like in SQL. */
const CUTS = [
  /\.slice\((18|26|34|-16|-20|-32|-40|-64)\b/,
  /\.(substring|substr)\(\d/,
  /\buint(64|96|128|160|192|224)\((?!0\))/,
  /\bbytes(8|12|16|20|24)\(/,
  /\b(left|right|substr|substring)\([a-z_.]*(id|hash|path|key)\b/,
];

const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  "protocol/ids.ts": ["word.slice(34)"],
  "contracts/AccountManager.sol": [
    "uint64(_atMost(balance, type(uint64).max))",
    "uint128(derivationPath) != uint128(id)",
    "uint128(derivationPath >> 128)",
    "uint128(_atMost(deniedOps, type(uint128).max))",
  ],
  "contracts/AccountRules.sol": ["(head << 128) | uint128(id)"],
  "contracts/GroupMembers.sol": ["NotInGroup(groupId, uint160(pkpId))", "MemberInBothLists(uint160(remove[i]))"],
  // An amount that its limit of 128 bits bounds, and an address without its prefix.
  "contracts/Budgets.sol": ["_used[counter] = uint128(used)"],
  "protocol/http/fields.ts": ["parseAddress(`0x${value.slice(-40)}`)"],
  // The address of a contract, computed from a hash as the chain does.
  "contracts/Delegating.sol": ["address(uint160(uint256(behind)))"],
  // Bit sets of groups, stamped with a generation: no ids of accounts or keys.
  "contracts/libraries/GroupSets.sol": ["uint224(_mask(groupId))", "uint224(groups)", "uint224(stamped)"],
  // Words that are checked to be addresses first, and addresses computed from public keys.
  "executor/chain/chain.ts": ["word.slice(-40)"],
  "executor/keys/secp256k1.ts": ["keccak256(point.subarray(1)).slice(-40)"],
};

function sources(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(ts|tsx|sol)$/.test(entry.name) && !entry.parentPath.includes("mocks"))
    .map((entry) => join(entry.parentPath, entry.name));
}

describe("ids", () => {
  it("are cut nowhere but in the listed places", () => {
    const found = FOLDERS.flatMap(sources).flatMap((file) =>
      readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => CUTS.some((cut) => cut.test(line)) && !/^\s*(\/\/|\*)/.test(line))
        .filter((line) => !(ALLOWED[relative(ROOT, file)] ?? []).some((allowed) => line.includes(allowed)))
        .map((line) => `${relative(ROOT, file)}: ${line.trim()}`),
    );
    expect(found).to.deep.equal([]);
  });

  it("are all in the table of the decision", () => {
    const page = readFileSync(join(ROOT, "docs/adr/0212-whole-account-ids.md"), "utf8");
    for (const file of Object.keys(ALLOWED).filter((name) => !/libraries|secp256k1|chain\.ts|Delegating/.test(name)))
      expect(page, file).to.include(file.split("/").at(-1));
  });
});
