/**
 * Creates keys. Nothing is stored: without an attempt, an account key or API-mode usage key is random; all others can
 * be derived again.
 */
import { randomBytes } from "node:crypto";
import { keyIdOf, packedAccountId, parseApiKey } from "../../protocol/ids";
import type { AccountId, Address, ApiKey, KeyId } from "../../protocol/ids";
import type { ExecutorAnswer, ExecutorRequest } from "../../protocol/executor";
import { verifyTypedData, type PrimaryType, type TypedDataDomain } from "../../protocol/typedData";
import type { Keyring } from "../keys/keyring";
import { addressOf } from "../keys/secp256k1";

const SECRET_BYTES = 32;

interface MintedKey {
  readonly key: ApiKey;
  readonly keyId: KeyId;
  readonly walletAddress: Address;
}

export class Mint {
  readonly #keyring: Keyring;
  readonly #domain: TypedDataDomain;
  readonly #nowSeconds: () => number;

  constructor(keyring: Keyring, domain: TypedDataDomain, nowSeconds: () => number = () => Date.now() / 1000) {
    this.#keyring = keyring;
    this.#domain = domain;
    this.#nowSeconds = nowSeconds;
  }

  /** With an attempt the key is derived from it, so that a retry gets the same one; without, it is random. */
  accountKey({ attempt }: ExecutorRequest<"mintAccountKey"> = {}): ExecutorAnswer<"mintAccountKey"> {
    const { key, keyId, walletAddress } = this.#keyOf("account-key", attempt);
    return { apiKey: key, apiKeyHash: keyId, walletAddress };
  }

  apiUsageKey({ attempt }: ExecutorRequest<"mintApiUsageKey"> = {}): ExecutorAnswer<"mintApiUsageKey"> {
    const { key, keyId, walletAddress } = this.#keyOf("api-usage-key", attempt);
    return { usageApiKey: key, apiKeyHash: keyId, walletAddress };
  }

  #keyOf(kind: "account-key" | "api-usage-key", attempt: string | undefined): MintedKey {
    return attempt === undefined
      ? randomKey()
      : this.#keyring.withAttempt(kind, Buffer.from(attempt, "hex"), keyOfSecret);
  }

  pkp(accountId: AccountId): ExecutorAnswer<"mintPkp"> {
    const { path, address } = this.#keyring.mintPkp(accountId);
    return { walletAddress: address, derivationPath: path };
  }

  /** @throws KeywrightError `typed_data_…`, `signature_…`. */
  pkpWithSignature(request: ExecutorRequest<"mintPkpWithSignature">): ExecutorAnswer<"mintPkpWithSignature"> {
    return this.pkp(this.#accountOf("CreateWallet", request));
  }

  /** @throws KeywrightError `typed_data_…`, `signature_…`. */
  usageKeyWithSignature(
    request: ExecutorRequest<"mintUsageKeyWithSignature">,
  ): ExecutorAnswer<"mintUsageKeyWithSignature"> {
    const account = this.#accountOf("AddUsageApiKey", request);
    const { path, value } = this.#keyring.mintUsageKey(account, keyOfSecret);
    return {
      walletAddress: value.walletAddress,
      derivationPath: path,
      usageApiKey: value.key,
      apiKeyHash: value.keyId,
    };
  }

  /**
   * The account of a signed mint: the one the request names (of a Safe or a converted account), else the signing
   * wallet's own.
   */
  #accountOf(
    primaryType: PrimaryType,
    { typed_data, signature, accountId }: ExecutorRequest<"mintPkpWithSignature">,
  ): AccountId {
    const expected = { primaryType, domain: this.#domain, nowSeconds: this.#nowSeconds() };
    const signer = verifyTypedData(typed_data, signature, expected);
    return accountId === undefined ? packedAccountId(signer) : (accountId.toLowerCase() as AccountId);
  }
}

function randomKey(): MintedKey {
  for (;;) {
    const secret = randomBytes(SECRET_BYTES);
    if (parseApiKey(secret.toString("base64")) !== undefined) return keyOfSecret(secret);
  }
}

/** The key whose text is the secret in base64; zero-fills the buffer. */
function keyOfSecret(secret: Buffer): MintedKey {
  const key = secret.toString("base64") as ApiKey;
  const minted = { key, keyId: keyIdOf(key), walletAddress: addressOf(secret) };
  secret.fill(0);
  return minted;
}
