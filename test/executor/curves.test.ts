/**
 * Ed25519, BIP-340 and P-256 keys: the standards' own vectors, committed vectors starting at the root, and a second
 * implementation.
 */
import { schnorr } from "@noble/curves/secp256k1";
import { expect } from "chai";
import { verify } from "node:crypto";
import fc from "fast-check";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { bip340PublicKey, signSchnorr, taprootOutputKey, withTaprootSecret } from "../../executor/keys/bip340";
import { deriveForCurve, kindOf } from "../../executor/keys/derive";
import { ed25519PublicKey, signEd25519 } from "../../executor/keys/ed25519";
import { Keyring } from "../../executor/keys/keyring";
import { p256Digest, p256PublicKey, signP256 } from "../../executor/keys/p256";
import { publicKeyEntry, publicKeyOn } from "../../executor/keys/curves";
import { ORDERS_MINUS_ONE, reduceToSecret } from "../../executor/keys/scalar";
import { CURVES, type Curve } from "../../protocol/curves";
import type { AccountId, Cid, DerivationPath, Hash32, PkpId } from "../../protocol/ids";
import { SEED, count } from "../support/counts";
import { bytes, hexOf, nobleOkm, noblePublicKey, nobleSecret, nobleVerify } from "../support/nobleKeys";

const read = (name: string): unknown => JSON.parse(readFileSync(join(__dirname, "../vectors", name), "utf8"));
type Row = Record<string, string>;
const standard = read("signatures.json") as Record<
  "ed25519" | "wycheproofEd25519" | "bip340" | "bip341" | "p256" | "p256Keys",
  Row[]
>;
interface CurveVector {
  owner: "pkp" | "action";
  path: string;
  account?: string;
  ipfsId?: string;
  curve: Curve;
  kind: string;
  okm: string;
  secret: string;
  publicKey: string;
  addresses: Record<string, string>;
}
const own = read("curves.json") as { root: string; namespace: string; keys: CurveVector[] };
/** A PKP is named by its account and path, an action by its CID alone. */
const nameOf = ({ account, path }: CurveVector): string[] => (account === undefined ? [path] : [account, path]);
const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const of = (row: Row, name: string): Buffer => bytes(row[name] ?? "missing");
const plain = (data: Uint8Array): string => Buffer.from(data).toString("hex");
const any32 = fc.uint8Array({ minLength: 32, maxLength: 32 });

describe("the vectors of the standards", () => {
  for (const [index, row] of standard.ed25519.entries()) {
    it(`RFC 8032, test ${index + 1}`, () => {
      expect(plain(ed25519PublicKey(of(row, "secret")))).to.equal(row.public);
      expect(plain(signEd25519(of(row, "secret"), of(row, "message")))).to.equal(row.signature);
    });
  }
  for (const [index, row] of standard.wycheproofEd25519.entries()) {
    it(`Wycheproof, Ed25519, test ${index + 1}`, () => {
      expect(plain(ed25519PublicKey(of(row, "secret")))).to.equal(row.public);
      expect(plain(signEd25519(of(row, "secret"), of(row, "message")))).to.equal(row.signature);
    });
  }
  for (const [index, row] of standard.bip340.entries()) {
    it(`BIP-340, index ${index}`, () => {
      expect(plain(bip340PublicKey(of(row, "secret")))).to.equal(row.public);
      expect(plain(signSchnorr(of(row, "secret"), of(row, "digest"), of(row, "aux")))).to.equal(row.signature);
    });
  }
  for (const [index, row] of standard.bip341.entries()) {
    it(`BIP-341, key path ${index}`, () => {
      expect(plain(bip340PublicKey(of(row, "secret")))).to.equal(row.internal);
      expect(plain(taprootOutputKey(of(row, "internal"), bytes(row.merkleRoot ?? "")))).to.equal(row.output);
      withTaprootSecret(of(row, "secret"), bytes(row.merkleRoot ?? ""), (tweaked) => {
        expect(plain(tweaked)).to.equal(row.tweakedSecret);
        expect(plain(signSchnorr(tweaked, of(row, "digest"), Buffer.alloc(32)))).to.equal(row.signature);
      });
    });
  }
  for (const row of standard.p256) {
    it(`RFC 6979, P-256 with SHA-256, "${row.messageText}", with low s`, () => {
      const s = BigInt(`0x${row.s}`);
      const low = (s > P256_ORDER / 2n ? P256_ORDER - s : s).toString(16).padStart(64, "0");
      expect(plain(p256PublicKey(of(row, "secret")))).to.equal(row.public);
      expect(plain(signP256(of(row, "secret"), p256Digest(Buffer.from(row.messageText ?? ""))))).to.equal(
        `${row.r}${low}`,
      );
    });
  }
  it("P-256 key pairs of NIST", () => {
    for (const row of standard.p256Keys) expect(plain(p256PublicKey(of(row, "secret")))).to.equal(row.public);
  });
});

describe("the committed keys of PKPs and actions on every curve", () => {
  const keyring = new Keyring(bytes(own.root), own.namespace as Hash32);
  const address = (path: string): PkpId =>
    own.keys.find((key) => key.path === path && key.curve === "secp256k1")?.addresses.ethereum as PkpId;

  for (const vector of own.keys) {
    it(`${vector.kind} at ${vector.path.slice(0, 12)}…`, () => {
      const { owner, path, curve } = vector;
      expect(kindOf(owner, curve)).to.equal(vector.kind);
      expect(hexOf(nobleOkm({ ...own, ...vector, name: nameOf(vector) }))).to.equal(vector.okm);
      expect(
        hexOf(deriveForCurve(bytes(own.root), bytes(own.namespace), owner, curve, nameOf(vector).map(bytes))),
      ).to.equal(vector.secret);
      const entry =
        owner === "pkp"
          ? keyring.withPkpOn(curve, vector.account as AccountId, path as DerivationPath, address(path), (secret) =>
              publicKeyEntry(curve, secret),
            )
          : keyring.withActionOn(curve, vector.ipfsId as Cid, (secret) => publicKeyEntry(curve, secret));
      expect(entry.public_key).to.equal(vector.publicKey);
      expect(entry.addresses).to.deep.equal(vector.addresses);
    });
  }

  it("are all different", () => {
    expect(new Set(own.keys.map(({ secret }) => secret)).size).to.equal(own.keys.length);
    expect(new Set(own.keys.map(({ kind }) => kind)).size).to.equal(8);
  });

  it("are used only when path and address match, and zero-filled afterwards", () => {
    const [first, second] = own.keys.filter(({ curve, owner }) => curve === "ed25519" && owner === "pkp") as [
      CurveVector,
      CurveVector,
    ];
    const use = (path: string, pkpId: PkpId, then: (secret: Buffer) => unknown = () => undefined): unknown =>
      keyring.withPkpOn("ed25519", first.account as AccountId, path as DerivationPath, pkpId, then);
    expect(() => use(first.path, address(second.path))).to.throw("unknown_pkp");
    const kept = use(first.path, address(first.path), (secret) => secret) as Buffer;
    expect(hexOf(kept)).to.equal(`0x${"00".repeat(32)}`);
    let tweaked: Uint8Array = Buffer.from("untouched");
    withTaprootSecret(bytes(`0x${"07".repeat(32)}`), Buffer.alloc(0), (secret) => (tweaked = secret));
    expect(plain(tweaked)).to.equal("00".repeat(32));
  });
});

describe("keys of random roots and names", () => {
  it("agree with a second implementation, and verify its signatures", () => {
    fc.assert(
      fc.property(
        any32,
        any32,
        fc.tuple(any32, any32),
        any32,
        fc.constantFrom(...CURVES),
        (root, namespace, name, signed, curve) => {
          const input = {
            root: hexOf(root),
            namespace: hexOf(namespace),
            kind: kindOf("pkp", curve),
            name: name.map(hexOf),
          };
          const named = name.map((part) => Buffer.from(part));
          const secret = deriveForCurve(Buffer.from(root), Buffer.from(namespace), "pkp", curve, named);
          expect(hexOf(secret)).to.equal(hexOf(nobleSecret(curve, nobleOkm(input))));
          const publicKey = publicKeyOn(curve, secret);
          expect(publicKey).to.equal(noblePublicKey(curve, secret));
          if (curve === "secp256k1") return;
          const sign = { ed25519: signEd25519, bip340: signSchnorr, p256: signP256 }[curve];
          const signature = sign(secret, signed);
          expect(nobleVerify(curve, publicKey, hexOf(signature), signed)).to.equal(true);
          signed[0] = (signed[0] ?? 0) ^ 1;
          expect(nobleVerify(curve, publicKey, hexOf(signature), signed)).to.equal(false);
        },
      ),
      { seed: SEED, numRuns: count(60, 3_000) },
    );
  });

  it("give taproot output keys whose secret signs for them, whatever the tree and the parity", () => {
    fc.assert(
      fc.property(any32, fc.oneof(any32, fc.constant(new Uint8Array(0))), any32, (material, merkleRoot, digest) => {
        const secret = reduceToSecret(material);
        const signature = withTaprootSecret(secret, merkleRoot, (tweaked) => signSchnorr(tweaked, digest));
        expect(schnorr.verify(signature, digest, taprootOutputKey(bip340PublicKey(secret), merkleRoot))).to.equal(true);
      }),
      { seed: SEED, numRuns: count(30, 2_000) },
    );
  });

  it("sign P-256 deterministically, with low s, as OpenSSL accepts it", () => {
    fc.assert(
      fc.property(any32, fc.uint8Array({ maxLength: 200 }), (material, message) => {
        const secret = reduceToSecret(material, ORDERS_MINUS_ONE.p256);
        const signature = signP256(secret, p256Digest(message));
        expect(plain(signP256(secret, p256Digest(message)))).to.equal(plain(signature));
        expect(BigInt(hexOf(signature.subarray(32))) <= P256_ORDER / 2n).to.equal(true);
        const { jwk } = publicKeyEntry("p256", secret);
        expect(
          verify("sha256", message, { key: { ...jwk }, format: "jwk", dsaEncoding: "ieee-p1363" }, signature),
        ).to.equal(true);
      }),
      { seed: SEED, numRuns: count(30, 2_000) },
    );
  });

  it("are never zero and never the order of P-256 or above, at the boundaries", () => {
    for (const [material, expected] of [
      [0n, 1n],
      [P256_ORDER - 2n, P256_ORDER - 1n],
      [P256_ORDER - 1n, 1n],
      [P256_ORDER, 2n],
      [2n ** 384n - 1n, 1n + ((2n ** 384n - 1n) % (P256_ORDER - 1n))],
    ] as const) {
      const given = Buffer.from(material.toString(16).padStart(96, "0"), "hex");
      expect(BigInt(hexOf(reduceToSecret(given, ORDERS_MINUS_ONE.p256)))).to.equal(expected);
    }
  });
});
