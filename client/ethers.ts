/**
 * `keywright/ethers`: a PKP as an ethers signer. Each signature is a run whose result is verified locally before it is
 * returned.
 */
import {
  AbstractSigner,
  Transaction,
  TypedDataEncoder,
  getAddress,
  getBytes,
  hashMessage,
  hexlify,
  recoverAddress,
  resolveAddress,
  resolveProperties,
  Signature,
  toUtf8Bytes,
  copyRequest,
  type Authorization,
  type AuthorizationRequest,
  type Provider,
  type TransactionLike,
  type TransactionRequest,
  type TypedDataDomain,
  type TypedDataField,
} from "ethers";
import * as library from "ethers";
import { ClientError } from "./errors";
import { askPkp, notSigned, portable, textOf, typesOf, type PkpOptions, type SigningAction } from "./signer/pkp";
import { defined } from "../protocol/defined";

export type { ActionInstead, PkpOptions, SigningAction } from "./signer/pkp";
export { STANDARD_ACTIONS, type StandardAction } from "./standardActions";

export interface KeywrightSignerOptions extends PkpOptions {
  /** Fills transactions in and sends them; without one they must be complete. */
  readonly provider?: Provider | null;
}

/** @throws ClientError `invalid_argument` when `pkpId` is not an address. */
export function keywrightSigner(options: KeywrightSignerOptions): KeywrightSigner {
  return new KeywrightSigner(options);
}

export class KeywrightSigner extends AbstractSigner {
  /** The PKP's address, which is the signer's. */
  readonly address: string;
  readonly #options: PkpOptions;

  constructor({ provider = null, ...options }: KeywrightSignerOptions) {
    super(provider);
    this.address = addressOf(options.pkpId);
    this.#options = { ...options, pkpId: this.address };
  }

  override async getAddress(): Promise<string> {
    return this.address;
  }

  override connect(provider: Provider | null): KeywrightSigner {
    return new KeywrightSigner({ ...this.#options, provider });
  }

  override async signMessage(message: string | Uint8Array): Promise<string> {
    const bytes = typeof message === "string" ? toUtf8Bytes(message) : message;
    const text = textOf(bytes);
    return text === undefined
      ? this.#signed("messageBytes", { bytes: hexlify(bytes) }, hashMessage(bytes))
      : this.#signed("message", { message: text }, hashMessage(bytes));
  }

  override async signTypedData(
    domain: TypedDataDomain,
    types: Record<string, TypedDataField[]>,
    value: Record<string, unknown>,
  ): Promise<string> {
    const { primaryType } = TypedDataEncoder.from(types);
    const resolved = await TypedDataEncoder.resolveNames(domain, types, value, (name) => this.#resolveName(name));
    const params = {
      domain: portable(resolved.domain),
      types: typesOf(types, primaryType),
      primaryType,
      message: portable(resolved.value),
    };
    return this.#signed("typedData", params, TypedDataEncoder.hash(resolved.domain, types, resolved.value));
  }

  override async signTransaction(request: TransactionRequest): Promise<string> {
    const transaction = Transaction.from(await this.#complete(request));
    if (transaction.chainId === 0n)
      throw new ClientError(
        "invalid_argument",
        "The transaction needs a chainId: without one its signature is good on every chain.",
      );
    const raw = await askPkp(this.#options, "transaction", { transaction: fieldsOf(transaction) });
    transaction.signature = this.#signatureIn(raw);
    if (transaction.from !== this.address) throw notSigned("transaction");
    return transaction.serialized;
  }

  override async authorize(request: AuthorizationRequest): Promise<Authorization> {
    // By its name, since an import of what ethers 6.13 lacks would keep the whole module from loading there.
    const { hashAuthorization } = library as Partial<typeof library>;
    if (hashAuthorization === undefined)
      throw new ClientError("invalid_argument", "Authorizations need ethers 6.14 or newer: npm install ethers@6.");
    const { address, chainId, nonce } = await this.populateAuthorization(request);
    const authorization = {
      address: await resolveAddress(address, this.provider),
      chainId: BigInt(chainId ?? 0),
      nonce: BigInt(nonce ?? 0),
    };
    const signature = await this.#signed(
      "authorization",
      { authorization: portable(authorization) },
      hashAuthorization(authorization),
    );
    return { ...authorization, signature: Signature.from(signature) };
  }

  /** Signs 32 bytes as they are. */
  async signDigest(digest: string): Promise<string> {
    return this.#signed("digest", { digest }, digest);
  }

  async #signed(name: SigningAction, params: Record<string, unknown>, digest: string): Promise<string> {
    const signature = await askPkp(this.#options, name, params);
    if (signature.length !== 132 || recovered(digest, signature) !== this.address) throw notSigned(name);
    return signature;
  }

  async #complete(request: TransactionRequest): Promise<TransactionLike<string>> {
    const { to, from, ...rest } = copyRequest(request);
    const addresses = await resolveProperties({
      to: to ? resolveAddress(to, this.provider) : undefined,
      from: from ? resolveAddress(from, this.provider) : undefined,
    });
    if (addresses.from !== undefined && getAddress(addresses.from) !== this.address)
      throw new ClientError(
        "invalid_argument",
        `The transaction is from ${addresses.from}, the signer is ${this.address}.`,
      );
    return { ...rest, ...defined({ to: addresses.to }) } as TransactionLike<string>;
  }

  async #resolveName(name: string): Promise<string> {
    const address = await this.provider?.resolveName(name);
    if (!address) throw new ClientError("invalid_argument", `The name ${name} resolves to no address.`);
    return address;
  }

  #signatureIn(raw: string): Signature {
    try {
      const { signature } = Transaction.from(raw);
      if (signature !== null) return signature;
    } catch {
      // Reported below.
    }
    throw notSigned("transaction");
  }
}

function addressOf(pkpId: string): string {
  try {
    return getAddress(pkpId);
  } catch {
    throw new ClientError("invalid_argument", "pkpId must be the PKP's address: 0x and 40 hex digits.");
  }
}

function recovered(digest: string, signature: string): string | undefined {
  try {
    return recoverAddress(getBytes(digest), signature);
  } catch {
    return undefined;
  }
}

/** The fields the transaction's type has, as JSON. */
function fieldsOf(transaction: Transaction): unknown {
  const { type, to, nonce, gasLimit, gasPrice, maxPriorityFeePerGas, maxFeePerGas, data, value, chainId, accessList } =
    transaction;
  const { maxFeePerBlobGas, blobVersionedHashes, authorizationList } = transaction;
  const fields = {
    type,
    to,
    nonce,
    gasLimit,
    gasPrice,
    maxPriorityFeePerGas,
    maxFeePerGas,
    data,
    value,
    chainId,
    accessList,
    maxFeePerBlobGas,
    blobVersionedHashes,
  };
  const authorizations = authorizationList?.map(
    ({ address, chainId: chain, nonce: at, signature: { r, s, yParity } }) => ({
      address,
      chainId: chain,
      nonce: at,
      signature: { r, s, yParity },
    }),
  );
  return portable(
    Object.fromEntries(
      Object.entries({ ...fields, authorizationList: authorizations }).filter(
        ([, value]) => value !== null && value !== undefined,
      ),
    ),
  );
}
