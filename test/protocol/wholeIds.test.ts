/** Ids, hashes and paths are compared whole. The places that cut one are listed, with reasons, in docs/adr/0212. */
import { expect } from "chai";
import { readFileSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";

const ROOT = join(__dirname, "../..");
const FOLDERS = ["contracts", "protocol", "relayer", "executor", "client", "dashboard", "ingress"];
/** Cuts of words in TypeScript, casts and shifts in Solidity, and their like in SQL. */
const CUTS = [
  /\b\w*(id|hash|path|word|account|pkp|wallet|digest)\)?\.(slice|subarray|substring|substr)\((?!2\))/i,
  /("(hex|base64url)"\)|`)\.(slice|subarray|substring|substr)\(/,
  /\.slice\((18|26|34|-16|-20|-32|-40|-64)\b/,
  /\.(substring|substr)\(\d/,
  /\b(asUintN|asIntN|dataSlice|readBigU?Int64..)\(/,
  /(>>|<<) ?(64|96|128|160|192|224|24\d)\b/,
  /\b(left|right|substr|substring)\([a-z_.]*(id|hash|path|key|owner)\b/,
  /\b(hashtext|hashtextextended|varchar ?)\(/,
];
/** A narrower type of numbers or bytes: `uint256` and `bytes32` are whole. */
const CAST = /(?<![.\w])(?:uint(\d+)\((?!0\))|bytes(\d+)\((?!0\)))/g;
const isCast = (line: string): boolean =>
  [...line.matchAll(CAST)].some(([, bits = "256", bytes = "32"]) => bits !== "256" || bytes !== "32");

const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  "protocol/ids.ts": ["word.slice(34)", "Number.parseInt(path.slice(2, 4), 16)"],
  "contracts/AccountManager.sol": [
    "uint64(_atMost(balance, type(uint64).max))",
    "uint40(_atMost(expiration, type(uint40).max))",
    "uint16(epoch)",
    "derivationPath >> 248",
    "uint128(derivationPath) != uint128(id)",
    "uint128(derivationPath >> 128)",
    "uint128(_atMost(deniedOps, type(uint128).max))",
  ],
  "contracts/AccountRules.sol": ["(head << 128) | uint128(id)"],
  "contracts/GroupMembers.sol": [
    "NotInGroup(groupId, uint160(pkpId))",
    "MemberInBothLists(uint160(remove[i]))",
    "uint32(index)",
  ],
  // An amount that its limit of 128 bits bounds, and an address without its prefix.
  "contracts/Budgets.sol": ["_used[counter] = uint128(used)"],
  "protocol/http/fields.ts": ["parseAddress(`0x${value.slice(-40)}`)"],
  "executor/triggers/triggers.ts": [
    '.update("id").digest("hex").slice(0, 32)',
    "digest.subarray(0, PATH_RANDOM_BYTES)",
  ],
  "executor/triggers/hooks.ts": ['createHash("sha256").update(id).digest("hex").slice(0, 32)'],
  "relayer/triggers/index.ts": ['createHash("sha256").update(actId).digest("hex").slice(0, 32)'],
  // Locks: accounts with the same number wait for each other, no more.
  "relayer/store/locks.ts": ["hashtext(${accountId})"],
  "relayer/store/migrations/0000_schema.ts": ["(key varchar(255) primary key"],
  "executor/writes/calldata.ts": ["word.slice(ADDRESS_PADDING.length)"],
  // Words that are checked to be addresses first, and addresses computed from public keys.
  "executor/chain/chain.ts": ["word.slice(-40)"],
};
/** No ids of accounts or keys: numbers and sets of bits, selectors, locks of machines, texts that are shown. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  "executor/keys/secp256k1.ts": ["keccak256(point.subarray(1)).slice(-40)"],
  // The address of a contract, computed from a hash as the chain does.
  "contracts/Delegating.sol": ["address(uint160(uint256(behind)))"],
  "contracts/AccountLists.sol": ["uint8(type(Scope).max)"],
  "contracts/ApiPayers.sol": ["uint48(activeFrom)"],
  "contracts/Batches.sol": ["bytes4(data[i])"],
  "contracts/libraries/Bits.sol": ["(word * (type(uint256).max / 65535)) >> 240"],
  "contracts/libraries/GroupSets.sol": ["uint224(_mask(groupId))", "uint224(groups)", "uint224(stamped)"],
  "contracts/libraries/Rows.sol": ["uint112(1 << _page(index / INDEXES_PER_WORD))"],
  "contracts/libraries/Texts.sol": ["uint24(bytes(name).length | (bytes(description).length << 8))"],
  "contracts/libraries/UsageKeys.sol": ["uint32(keys.length)", "uint32(longest)"],
  "relayer/store/locks.ts": ["hashtext('chain_events')"],
  "relayer/store/migrations/0032_changes_of_owner.ts": ["hashtext('webhooks')"],
  "relayer/store/migrations/0042_lock_classes.ts": ["hashtext('webhooks')"],
  "relayer/store/sessionLock.ts": ["hashtextextended($1, 0)", "hashtextextended(${name}, 0)"],
  "relayer/middleware/cardDouble.ts": ["ctx.path.slice(PREFIX.length)"],
  "protocol/http/signatures.ts": ["derivation_path: `0x02${path.slice(4)}`"],
  "executor/fetcher/sources.ts": ["base58btc.encode(multihash).slice(1) === cid"],
  "client/verify/steps.ts": ['MRTD ${mrtd.toString("hex").slice(0, 16)}…'],
  "dashboard/components/text.ts": ['id.slice(0, id.startsWith("0x") ? 8 : 6)'],
};

function sources(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(ts|tsx|sol)$/.test(entry.name) && !entry.parentPath.includes("mocks"))
    .map((entry) => join(entry.parentPath, entry.name));
}

const isCut = (line: string): boolean =>
  !/^\s*(\/\/|\*)/.test(line) && (isCast(line) || CUTS.some((cut) => cut.test(line)));

describe("ids", () => {
  it("are cut nowhere but in the listed places", () => {
    const found = FOLDERS.flatMap(sources).flatMap((file) => {
      const name = relative(ROOT, file);
      const known = [...(ALLOWED[name] ?? []), ...(OTHERS[name] ?? [])];
      return readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => isCut(line) && !known.some((one) => line.includes(one)))
        .map((line) => `${name}: ${line.trim()}`);
    });
    expect(found).to.deep.equal([]);
  });

  it("are cut in every listed place", () => {
    for (const [file, cuts] of [...Object.entries(ALLOWED), ...Object.entries(OTHERS)]) {
      const lines = readFileSync(join(ROOT, file), "utf8").split("\n");
      for (const cut of cuts)
        expect(
          lines.some((line) => isCut(line) && line.includes(cut)),
          `${file}: ${cut}`,
        ).to.equal(true);
    }
  });

  it("would be seen to be cut in any usual way", () => {
    for (const line of [
      "const head = id.slice(2, 34);",
      "accountId.slice(0, 10) === other",
      "BigInt.asUintN(128, BigInt(word))",
      "bytesOf(path).subarray(16)",
      'digest("hex").slice(0, 16)',
      "if (uint32(id) == 1) return;",
      "bytes4(bytes32(id))",
      "address(uint160(id))",
      "uint256 tail = id & (type(uint256).max >> 128);",
      "select left(account_id, 20)",
      "pg_advisory_xact_lock(hashtext(${accountId}))",
    ])
      expect(isCut(line), line).to.equal(true);
  });

  it("are all in the table of the decision", () => {
    const page = readFileSync(join(ROOT, "docs/adr/0212-whole-account-ids.md"), "utf8");
    for (const file of Object.keys(ALLOWED)) expect(page, file).to.include(file.split("/").at(-1));
  });
});
