import { expect } from "chai";
import fc from "fast-check";
import { computeAddress, hexlify, id, keccak256 } from "ethers";
import {
  decodedKeyIdOf,
  derivationPath,
  keyIdOf,
  packedAccountId,
  parseAddress,
  parseApiKey,
  parseHash32,
  PathKind,
  pathKindFor,
  walletAddressOf,
  type AccountId,
  type Address,
} from "../../protocol/ids";
import { count, SEED } from "../support/counts";

const secret = fc.uint8Array({ minLength: 32, maxLength: 32 });
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");

describe("a key", () => {
  it("is 32 bytes in canonical base64 and names the wallet of its secret", () => {
    fc.assert(
      fc.property(secret, (bytes) => {
        const key = parseApiKey(base64(bytes));
        if (key === undefined) return; // zero or beyond the group order: negligible probability
        expect(walletAddressOf(key)).to.equal(computeAddress(hexlify(bytes)));
        expect(keyIdOf(key)).to.equal(id(base64(bytes)));
        expect(decodedKeyIdOf(key)).to.equal(keccak256(bytes));
      }),
      { seed: SEED, numRuns: count(50, 2_000) },
    );
  });

  const good = base64(new Uint8Array(32).fill(7));
  const order = Buffer.from("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", "hex");
  for (const [why, text] of [
    ["zero is no secret", base64(new Uint8Array(32))],
    ["the group order is no secret", base64(order)],
    ["31 bytes", base64(new Uint8Array(31).fill(7))],
    ["33 bytes", base64(new Uint8Array(33).fill(7))],
    ["20 bytes: an address would pose as a key", base64(new Uint8Array(20).fill(7))],
    ["no padding", good.replace("=", "")],
    ["base64url", base64(new Uint8Array(32).fill(0xfb)).replaceAll("+", "-").replaceAll("/", "_")],
    ["stray bits behind the last byte", `${good.slice(0, 42)}d=`],
    ["a space before it", ` ${good}`],
    ["a line end behind it", `${good}\n`],
    ["a hash", id("x")],
    ["empty", ""],
  ] as const) {
    it(`is refused: ${why}`, () => {
      expect(parseApiKey(text)).to.equal(undefined);
    });
  }
});

describe("a derivation path", () => {
  const account = parseHash32(id("account")) as AccountId;
  const other = parseHash32(id("other")) as AccountId;

  it("reveals its kind to its own account only", () => {
    const path = derivationPath(PathKind.pkp, new Uint8Array(15).fill(1), account);
    expect(path).to.match(/^0x01(01){15}[0-9a-f]{32}$/);
    expect(pathKindFor(path, account)).to.equal(PathKind.pkp);
    expect(pathKindFor(path, other)).to.equal(undefined);
  });

  it("has one of the two known kinds", () => {
    const path = derivationPath(PathKind.usageKey, new Uint8Array(15), account);
    expect(pathKindFor(path, account)).to.equal(PathKind.usageKey);
    expect(pathKindFor(`0x03${path.slice(4)}` as typeof path, account)).to.equal(undefined);
  });

  it("contains 15 random bytes", () => {
    expect(() => derivationPath(PathKind.pkp, new Uint8Array(14), account)).to.throw(RangeError);
  });
});

describe("addresses and hashes", () => {
  it("are accepted in any case and normalised to one", () => {
    const address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
    for (const text of [address, address.toLowerCase(), `0x${address.slice(2).toUpperCase()}`])
      expect(parseAddress(text)).to.equal(address);
    expect(parseHash32(`0x${"AB".repeat(32)}`)).to.equal(`0x${"ab".repeat(32)}`);
  });

  it("are refused in any other form", () => {
    for (const text of ["", "0x", `0x${"1".repeat(39)}`, `0x${"1".repeat(41)}`, "1".repeat(40), `0x${"g".repeat(40)}`])
      expect(parseAddress(text)).to.equal(undefined);
    for (const text of ["", `0x${"1".repeat(63)}`, `0x${"1".repeat(65)}`, "1".repeat(64)])
      expect(parseHash32(text)).to.equal(undefined);
  });

  it("give a wallet's own account the hash of its 20 bytes", () => {
    const owner = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266" as Address;
    expect(packedAccountId(owner)).to.equal(keccak256(owner));
  });
});
