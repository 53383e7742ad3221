/**
 * The only holder of the root key. Derives a key for one use, passes it to a callback as a buffer and zero-fills it
 * afterwards; only signatures, addresses and ciphertexts leave.
 */
import { randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import { KeywrightError } from "../../protocol/errors";
import type { Curve } from "../../protocol/curves";
import { PathKind, derivationPath, hasTailOf, pathKindFor } from "../../protocol/ids";
import type { AccountId, Address, Cid, DerivationPath, Hash32, PkpId } from "../../protocol/ids";
import type { RootStatement } from "../../protocol/rootKey";
import { ROOT_KEY_BYTES, deriveForCurve, deriveSecret, deriveSymmetric, type KeyKind, type KeyName } from "./derive";
import { rootStatementOf } from "./rootIdentity";
import { addressOf } from "./secp256k1";

type Use<T> = (key: Buffer) => T;

const PATH_KINDS = { [PathKind.pkp]: "pkp", [PathKind.usageKey]: "usage-key" } as const satisfies Record<
  PathKind,
  KeyKind
>;
/** The only key of its kind. */
const ONLY: KeyName = [Buffer.alloc(0)];
const ADDRESSES_KEPT = 10_000;

export class Keyring {
  readonly #root: Buffer;
  readonly #namespace: Buffer;
  /** By account and path. They are public and never change; computing one takes as long as a signature. */
  readonly #addresses = new LRUCache<string, Address>({ max: ADDRESSES_KEPT });

  /** Copies the root key; the caller zero-fills its own buffer. */
  constructor(root: Buffer, namespace: Hash32) {
    if (root.length !== ROOT_KEY_BYTES) throw new RangeError(`a root key has ${ROOT_KEY_BYTES} bytes`);
    // Not Buffer.from, which would copy the root key into the shared buffer pool.
    this.#root = Buffer.alloc(ROOT_KEY_BYTES, root);
    this.#namespace = bytesOf(namespace);
  }

  /**
   * Uses a registered PKP's secret. The path must be a PKP path of this account and derive to the registered address.
   * @throws KeywrightError `unknown_path_kind`, `foreign_derivation_path`, `unknown_pkp`.
   */
  withPkp<T>(account: AccountId, path: DerivationPath, pkpId: PkpId, use: Use<T>): T {
    this.requirePkp(account, path, pkpId);
    return this.#withSecret("pkp", nameOf(account, path), use);
  }

  /** Makes the checks of `withPkp`, for operations that use another key on the PKP's behalf. */
  requirePkp(account: AccountId, path: DerivationPath, pkpId: PkpId): void {
    requirePkpPath(account, path);
    if (this.addressAt(account, path) === pkpId) return;
    throw new KeywrightError(
      "unknown_pkp",
      `The key registered as ${pkpId} is not the one its derivation path leads to, so it is not used.`,
    );
  }

  /**
   * Uses a registered PKP's secret on a curve. The path is checked as in `withPkp`, against the PKP's address.
   * @throws KeywrightError `unknown_path_kind`, `foreign_derivation_path`, `unknown_pkp`.
   */
  withPkpOn<T>(curve: Curve, account: AccountId, path: DerivationPath, pkpId: PkpId, use: Use<T>): T {
    this.requirePkp(account, path, pkpId);
    return this.#withCurve("pkp", curve, nameOf(account, path), use);
  }

  /** Uses the secret of the payer with this index; 0 is the admin payer. */
  withPayer<T>(index: number, use: Use<T>): T {
    const number = Buffer.alloc(4);
    number.writeUInt32BE(index);
    return this.#withSecret("payer", [number], use);
  }

  /** Uses the identity key of an action, derived from the CID of its code alone. */
  withAction<T>(cid: Cid, use: Use<T>): T {
    return this.#withSecret("action", [Buffer.from(cid, "utf8")], use);
  }

  /** Uses the identity key of an action on a curve. */
  withActionOn<T>(curve: Curve, cid: Cid, use: Use<T>): T {
    return this.#withCurve("action", curve, [Buffer.from(cid, "utf8")], use);
  }

  /**
   * Uses the seed of the Ed25519 key that signs the keyholder's statements about public keys. The config document
   * contains its public key.
   */
  withStatementKey<T>(use: Use<T>): T {
    return this.#withSymmetric("statement", ONLY, use);
  }

  /** The root's word for its statement key under this namespace. */
  rootStatement(statementKey: string): RootStatement {
    return rootStatementOf(this.#root, `0x${this.#namespace.toString("hex")}` as Hash32, statementKey);
  }

  /** Uses the key with which actions encrypt for a PKP of an account. */
  withEncryptionKey<T>(account: AccountId, pkpId: PkpId, use: Use<T>): T {
    return this.#withSymmetric("encryption", nameOf(account, pkpId), use);
  }

  /** Uses the key that authenticates calldata between authorisation and signature. */
  withTagKey<T>(use: Use<T>): T {
    return this.#withSymmetric("write-tag", ONLY, use);
  }

  /** Uses the wallet secret of an identity (OIDC issuer and subject). */
  withOwner<T>(issuer: string, subject: string, use: Use<T>): T {
    return this.#withSecret("owner", [Buffer.from(issuer, "utf8"), Buffer.from(subject, "utf8")], use);
  }

  ownerWallet(issuer: string, subject: string): Address {
    return this.withOwner(issuer, subject, addressOf);
  }

  payerAddress(index: number): Address {
    return this.withPayer(index, addressOf);
  }

  /** A fresh derivation path of a PKP for an account, and its address. */
  mintPkp(account: AccountId): { path: DerivationPath; address: Address } {
    const path = derivationPath(PathKind.pkp, randomBytes(15), account);
    return { path, address: this.addressAt(account, path) };
  }

  /** A fresh derivation path of a usage key for an account; `use` gets the 32 secret bytes. */
  mintUsageKey<T>(account: AccountId, use: Use<T>): { path: DerivationPath; value: T } {
    const path = derivationPath(PathKind.usageKey, randomBytes(15), account);
    return { path, value: this.#withSecret("usage-key", nameOf(account, path), use) };
  }

  /**
   * Uses the secret of a key that a request creates, the same for every retry of the request. `use` gets its 32 bytes.
   */
  withAttempt<T>(kind: "account-key" | "api-usage-key", attempt: Buffer, use: Use<T>): T {
    return this.#withSecret(kind, [attempt], use);
  }

  /** Uses the secret of a trigger's usage key, which is that of the account and of all that the digest covers. */
  withTrigger<T>(account: AccountId, definitionDigest: Buffer, use: Use<T>): T {
    return this.#withSecret("trigger", [bytesOf(account), definitionDigest], use);
  }

  /** Uses the key that seals an account's trigger definitions and accepted hooks, which relayers store. */
  withTriggerSeal<T>(account: AccountId, use: Use<T>): T {
    return this.#withSymmetric("trigger-seal", [bytesOf(account)], use);
  }

  /**
   * The address that a path of this account derives to, whatever its kind.
   * @throws KeywrightError `unknown_path_kind`, `foreign_derivation_path`.
   */
  addressAt(account: AccountId, path: DerivationPath): Address {
    const kind = PATH_KINDS[requirePath(account, path)];
    const place = `${account}${path}`;
    const known = this.#addresses.get(place);
    if (known !== undefined) return known;
    const address = this.#withSecret(kind, nameOf(account, path), addressOf);
    this.#addresses.set(place, address);
    return address;
  }

  /** Zero-fills the root key. The keyring must not be used afterwards: it would derive from zeros. */
  destroy(): void {
    this.#root.fill(0);
  }

  #withCurve<T>(owner: "pkp" | "action", curve: Curve, name: KeyName, use: Use<T>): T {
    return useOnce(deriveForCurve(this.#root, this.#namespace, owner, curve, name), use);
  }

  #withSecret<T>(kind: KeyKind, name: KeyName, use: Use<T>): T {
    return useOnce(deriveSecret(this.#root, this.#namespace, kind, name), use);
  }

  #withSymmetric<T>(kind: KeyKind, name: KeyName, use: Use<T>): T {
    return useOnce(deriveSymmetric(this.#root, this.#namespace, kind, name), use);
  }
}

/** Names a key of an account: by the whole account id, of which a path has only half, and by a path or PKP. */
const nameOf = (account: AccountId, key: DerivationPath | PkpId): KeyName => [bytesOf(account), bytesOf(key)];

function useOnce<T>(key: Buffer, use: Use<T>): T {
  try {
    return use(key);
  } finally {
    key.fill(0);
  }
}

function requirePath(account: AccountId, path: DerivationPath): PathKind {
  const kind = pathKindFor(path, account);
  if (kind !== undefined) return kind;
  if (!hasTailOf(account, path)) {
    throw new KeywrightError("foreign_derivation_path", `Derivation path ${path} is not one of account ${account}.`);
  }
  throw new KeywrightError(
    "unknown_path_kind",
    `Derivation path ${path} starts with neither 01 (PKP) nor 02 (usage key).`,
  );
}

function requirePkpPath(account: AccountId, path: DerivationPath): void {
  if (requirePath(account, path) !== PathKind.pkp) {
    throw new KeywrightError(
      "unknown_path_kind",
      "This is the wallet of a usage key; only a PKP can be used in an action.",
    );
  }
}

function bytesOf(hex: string): Buffer {
  return Buffer.from(hex.slice(2), "hex");
}
