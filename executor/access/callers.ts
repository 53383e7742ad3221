/**
 * Resolves a credential to the caller and the ids under which the contract may know it. Reads nothing from the chain.
 */
import { KeywrightError } from "../../protocol/errors";
import { decodedKeyIdOf, keyIdOf, packedAccountId, parseApiKey } from "../../protocol/ids";
import type { AccountId, Address, ApiKey, KeyId } from "../../protocol/ids";
import type { Credential } from "../../protocol/executor";
import type { IdentityVerifier } from "./identity";
import type { Keyring } from "../keys/keyring";
import { addressOf } from "../keys/secp256k1";

/** `ids`: the possible ids on chain, the usual one first. `wallet`: the caller's own address, computed on demand. */
export type Caller =
  | { readonly type: "key"; readonly ids: readonly [KeyId, KeyId?]; wallet(): Address }
  | {
      readonly type: "identity";
      readonly ids: readonly [AccountId];
      readonly issuer: string;
      readonly subject: string;
      wallet(): Address;
    };

export class Callers {
  readonly #keyring: Keyring;
  readonly #identities: IdentityVerifier;

  constructor(keyring: Keyring, identities: IdentityVerifier) {
    this.#keyring = keyring;
    this.#identities = identities;
  }

  /** @throws KeywrightError `malformed_key`, `invalid_identity_token`, `identity_provider_unavailable`. */
  async resolve(credential: Credential): Promise<Caller> {
    return credential.type === "key" ? callerOfKey(credential.key) : this.callerOfToken(credential.token);
  }

  /** The caller of an identity token; its wallet is derived from issuer and subject. */
  async callerOfToken(token: string): Promise<Caller & { type: "identity" }> {
    const { issuer, subject } = await this.#identities.verify(token);
    const wallet = this.#keyring.ownerWallet(issuer, subject);
    return { type: "identity", ids: [packedAccountId(wallet)], issuer, subject, wallet: () => wallet };
  }
}

function callerOfKey(text: string): Caller {
  const key = parseApiKey(text);
  if (key === undefined)
    throw new KeywrightError("malformed_key", "A key is 32 bytes in standard base64: 44 characters.");
  return { type: "key", ids: [keyIdOf(key), decodedKeyIdOf(key)], wallet: () => walletOf(key) };
}

function walletOf(key: ApiKey): Address {
  const secret = Buffer.from(key, "base64");
  try {
    return addressOf(secret);
  } finally {
    secret.fill(0);
  }
}
