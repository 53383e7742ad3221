/**
 * Every key of the service: committed vectors, a second implementation, and paths and addresses that must be refused.
 */
import { expect } from "chai";
import { SigningKey, computeAddress, getBytes, hexlify, recoverAddress, toBeHex } from "ethers";
import { ed25519 } from "@noble/curves/ed25519";
import fc from "fast-check";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deriveSecret, deriveSymmetric, type KeyKind } from "../../executor/keys/derive";
import { Keyring } from "../../executor/keys/keyring";
import { ed25519PublicKey } from "../../executor/keys/ed25519";
import { rootIdentityOf } from "../../executor/keys/rootIdentity";
import { rootKeyFromFile } from "../../executor/keys/rootKey";
import { reduceToSecret } from "../../executor/keys/scalar";
import { addressOf, publicKeyOf, serializeSignature, signDigest } from "../../executor/keys/secp256k1";
import { CURVES } from "../../protocol/curves";
import { KeywrightError } from "../../protocol/errors";
import type { AccountId, Cid, DerivationPath, Hash32, PkpId } from "../../protocol/ids";
import { rootCommitmentOf, rootStatement } from "../../protocol/rootKey";
import { SEED, count } from "../support/counts";
import { bytes, nobleOkm } from "../support/nobleKeys";

interface KeyVector {
  root: string;
  namespace: string;
  kind: KeyKind;
  name: string[];
  okm: string;
  secret?: string;
  symmetricKey?: string;
  address?: string;
}
const vectors = JSON.parse(readFileSync(join(__dirname, "../vectors/keys.json"), "utf8")) as {
  account: string;
  keys: KeyVector[];
  reductions: { material: string; secret: string }[];
};
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const account = vectors.account as AccountId;
const PKP_VECTOR = vectors.keys[0] as KeyVector;
const USAGE_VECTOR = vectors.keys.find(({ kind }) => kind === "usage-key") as KeyVector;

/** A key of an account is named by the account and by a path in it, others by one part alone. */
const pathOf = ({ name }: KeyVector): string => name.at(-1) as string;

const [PKP_PATH, USAGE_PATH] = [pathOf(PKP_VECTOR), pathOf(USAGE_VECTOR)];

function bigintSecret(okm: Buffer): string {
  return `0x${(1n + (BigInt(hexlify(okm)) % (ORDER - 1n))).toString(16).padStart(64, "0")}`;
}
function refusal(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof KeywrightError) return error.code;
    throw error;
  }
  return "allowed";
}

describe("key derivation", () => {
  for (const vector of vectors.keys) {
    it(`gives the committed ${vector.kind} key at ${pathOf(vector).slice(0, 12)}…`, () => {
      const inputs = [bytes(vector.root), bytes(vector.namespace), vector.kind, vector.name.map(bytes)] as const;
      expect(hexlify(nobleOkm(vector))).to.equal(vector.okm);
      if (vector.symmetricKey !== undefined)
        return expect(hexlify(deriveSymmetric(...inputs))).to.equal(vector.symmetricKey);
      const secret = deriveSecret(...inputs);
      expect(hexlify(secret)).to.equal(vector.secret);
      expect(addressOf(secret)).to.equal(vector.address);
    });
  }

  it("reduces exactly at the boundaries of the order, never to zero and never to the order or above", () => {
    for (const { material, secret } of vectors.reductions)
      expect(hexlify(reduceToSecret(bytes(material)))).to.equal(secret);
  });

  it("agrees with the second implementation on any input", () => {
    const any32 = fc.uint8Array({ minLength: 32, maxLength: 32 });
    const kind = fc.constantFrom<KeyKind>("pkp", "usage-key", "owner", "payer", "action");
    const name = fc.array(fc.uint8Array({ maxLength: 80 }), { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(any32, any32, kind, name, (root, namespace, keyKind, parts) => {
        const inputs = { namespace: hexlify(namespace), kind: keyKind, name: parts.map((part) => hexlify(part)) };
        const vector = { root: hexlify(root), ...inputs };
        const named = parts.map((part) => Buffer.from(part));
        const secret = deriveSecret(Buffer.from(root), Buffer.from(namespace), keyKind, named);
        expect(hexlify(secret)).to.equal(bigintSecret(nobleOkm(vector)));
        expect(addressOf(secret)).to.equal(computeAddress(new SigningKey(secret)));
      }),
      { seed: SEED, numRuns: count(100, 5_000) },
    );
  });

  it("gives a different key for a different root, namespace, kind or name", () => {
    const secrets = vectors.keys.map(({ secret, symmetricKey }) => secret ?? symmetricKey);
    expect(new Set(secrets).size).to.equal(secrets.length);
  });
});

describe("the root identity", () => {
  const root = Buffer.alloc(32, 5);
  const namespace = `0x${"01".repeat(32)}` as Hash32;

  it("has a commitment that depends on the root alone", () => {
    const { commitment, publicKey } = rootIdentityOf(root);
    expect(commitment).to.equal(rootCommitmentOf(publicKey));
    expect(rootIdentityOf(Buffer.alloc(32, 6)).commitment).not.to.equal(commitment);
    for (const other of [namespace, `0x${"02".repeat(32)}` as Hash32])
      expect(new Keyring(root, other).rootStatement(`0x${"ed".repeat(32)}`)).to.include({
        commitment,
        public_key: publicKey,
      });
  });

  it("vouches for one statement key under one namespace, with a key that serves nothing else", () => {
    const keyring = new Keyring(root, namespace);
    const statementKey = keyring.withStatementKey((seed) => `0x${ed25519PublicKey(seed).toString("hex")}`);
    const { public_key, signature } = keyring.rootStatement(statementKey);
    const holds = (of: string, key: string): boolean =>
      ed25519.verify(signature.slice(2), rootStatement(of, key), public_key.slice(2));
    expect(holds(namespace, statementKey)).to.equal(true);
    expect(holds(`0x${"02".repeat(32)}`, statementKey)).to.equal(false);
    expect(holds(namespace, public_key)).to.equal(false);
    expect(public_key).not.to.equal(statementKey);
  });
});

describe("native secp256k1", () => {
  it("signs what ethers recovers, with low s and v 27 or 28", () => {
    const any32 = fc.uint8Array({ minLength: 32, maxLength: 32 });
    fc.assert(
      fc.property(any32, any32, (material, digest) => {
        const secret = reduceToSecret(material);
        const signature = signDigest(secret, digest);
        expect(recoverAddress(digest, serializeSignature(signature))).to.equal(addressOf(secret));
        expect(BigInt(signature.s) <= ORDER / 2n).to.equal(true);
        expect(serializeSignature(signature)).to.equal(new SigningKey(secret).sign(digest).serialized);
        expect(publicKeyOf(secret)).to.equal(SigningKey.computePublicKey(secret, false));
      }),
      { seed: SEED, numRuns: count(50, 2_000) },
    );
  });
});

describe("the keyring", () => {
  const keyring = new Keyring(bytes(PKP_VECTOR.root), PKP_VECTOR.namespace as Hash32);
  const usePkp = (path: string, pkpId: string, of: AccountId = account): string =>
    refusal(() => keyring.withPkp(of, path as DerivationPath, pkpId as PkpId, () => undefined));

  it("uses a PKP whose path and address match", () => {
    const secret = keyring.withPkp(account, PKP_PATH as DerivationPath, PKP_VECTOR.address as PkpId, (key) =>
      hexlify(key),
    );
    expect(secret).to.equal(PKP_VECTOR.secret);
  });

  it("zero-fills the key after use, also when the use fails", () => {
    let kept: Buffer = Buffer.alloc(0);
    keyring.withPkp(account, PKP_PATH as DerivationPath, PKP_VECTOR.address as PkpId, (key) => (kept = key));
    expect(kept.equals(Buffer.alloc(32))).to.equal(true);
    const failing = (): void =>
      keyring.withPayer(1, (key) => {
        kept = key;
        throw new Error("use failed");
      });
    expect(failing).to.throw("use failed");
    expect(kept.equals(Buffer.alloc(32))).to.equal(true);
  });

  it("refuses a registered address that the path does not lead to", () => {
    expect(usePkp(PKP_PATH, USAGE_VECTOR.address as string)).to.equal("unknown_pkp");
  });

  it("refuses path 0, another account's path, an unknown kind, and a usage key's path", () => {
    expect(usePkp(`0x${"0".repeat(64)}`, PKP_VECTOR.address as string)).to.equal("foreign_derivation_path");
    const other = `0x${"11".repeat(32)}` as AccountId;
    expect(usePkp(PKP_PATH, PKP_VECTOR.address as string, other)).to.equal("foreign_derivation_path");
    expect(usePkp(`0x03${PKP_PATH.slice(4)}`, PKP_VECTOR.address as string)).to.equal("unknown_path_kind");
    expect(usePkp(USAGE_PATH, USAGE_VECTOR.address as string)).to.equal("unknown_path_kind");
  });

  it("mints paths of the right kind and account, never twice the same", () => {
    const first = keyring.mintPkp(account);
    const second = keyring.mintPkp(account);
    expect(first.path.slice(0, 4)).to.equal("0x01");
    expect(first.path.slice(34)).to.equal(account.slice(34));
    expect(keyring.addressAt(account, first.path)).to.equal(first.address);
    expect(second.path).to.not.equal(first.path);
    const usage = keyring.mintUsageKey(account, (secret) => addressOf(secret));
    expect(usage.path.slice(0, 4)).to.equal("0x02");
    expect(keyring.addressAt(account, usage.path)).to.equal(usage.value);
  });

  it("gives two accounts different keys at one path, however much their ids share", () => {
    const path = keyring.mintPkp(account).path;
    const bit = fc.integer({ min: 0, max: 255 });
    fc.assert(
      fc.property(fc.uniqueArray(bit, { minLength: 1, maxLength: 255 }), (differing) => {
        const id = differing.reduce((value, at) => value ^ (1n << BigInt(at)), BigInt(account));
        const other = toBeHex(id, 32) as AccountId;
        const sharesTail = other.slice(34) === account.slice(34);
        const used = usePkp(path, keyring.addressAt(account, path), other);
        expect(used).to.equal(sharesTail ? "unknown_pkp" : "foreign_derivation_path");
        if (!sharesTail) return;
        expect(keyring.addressAt(other, path)).to.not.equal(keyring.addressAt(account, path));
        // Each is used only under its own address, also after the other's was computed.
        expect(usePkp(path, keyring.addressAt(other, path))).to.equal("unknown_pkp");
        for (const curve of CURVES) {
          const key = (of: AccountId): string =>
            keyring.withPkpOn(curve, of, path, keyring.addressAt(of, path) as PkpId, (secret) => hexlify(secret));
          expect(key(other)).to.not.equal(key(account));
        }
        const encryption = (of: AccountId): string =>
          keyring.withEncryptionKey(of, keyring.addressAt(account, path) as PkpId, (secret) => hexlify(secret));
        expect(encryption(other)).to.not.equal(encryption(account));
      }),
      { seed: SEED, numRuns: count(200, 5_000), examples: [[[255]], [[128]], [[128, 200, 255]], [[0]], [[127]]] },
    );
  });

  it("distinguishes identities whose issuer and subject only differ in their boundary", () => {
    expect(keyring.ownerWallet("https://a", "bc")).to.not.equal(keyring.ownerWallet("https://ab", "c"));
  });

  it("binds an action's identity to its CID and an encryption key to account and PKP", () => {
    const ofCid = (cid: string): string => keyring.withAction(cid as Cid, (key) => hexlify(key));
    const action = vectors.keys.find(({ kind }) => kind === "action") as KeyVector;
    expect(ofCid(Buffer.from(getBytes(pathOf(action))).toString("utf8"))).to.equal(action.secret);
    expect(ofCid("Qmf412jQZiuVUtdgnB36FXFX7xg5V6KEbSJ4dpQuhkLyfD")).to.not.equal(action.secret);
    const encryption = vectors.keys.find(({ kind }) => kind === "encryption") as KeyVector;
    const key = keyring.withEncryptionKey(account, pathOf(encryption) as PkpId, (secret) => hexlify(secret));
    expect(key).to.equal(encryption.symmetricKey);
  });
});

describe("the development root key file", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "keywright-root-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it("is created with mode 0600 and read again unchanged", () => {
    const file = join(folder, "deep", "root.key");
    const made = rootKeyFromFile(file);
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    expect(made.length).to.equal(32);
    expect(rootKeyFromFile(file).equals(made)).to.equal(true);
  });

  it("is refused when others may read it, when its length is wrong, and when it is a link", () => {
    const file = join(folder, "root.key");
    rootKeyFromFile(file);
    chmodSync(file, 0o640);
    expect(() => rootKeyFromFile(file)).to.throw("chmod 600");
    for (const length of [0, 31, 33]) {
      writeFileSync(file, Buffer.alloc(length));
      chmodSync(file, 0o600);
      expect(() => rootKeyFromFile(file)).to.throw("exactly 32 bytes");
    }
    const link = join(folder, "link.key");
    symlinkSync(join(folder, "elsewhere.key"), link);
    expect(() => rootKeyFromFile(link)).to.throw();
    expect(existsSync(join(folder, "elsewhere.key"))).to.equal(false);
  });
});
