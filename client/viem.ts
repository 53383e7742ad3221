/**
 * `keywright/viem`: a PKP as a viem local account. Each signature is a run whose result is verified locally before it
 * is returned.
 */
import {
  getAddress,
  getTransactionType,
  hashMessage,
  hashTypedData,
  hexToBytes,
  isAddress,
  keccak256,
  parseSignature,
  parseTransaction,
  recoverAddress,
  serializeTransaction,
  toBytes,
  type Address,
  type AuthorizationRequest,
  type CustomSource,
  type Hex,
  type LocalAccount,
  type NonceManager,
  type SerializeTransactionFn,
  type Signature,
  type SignAuthorizationReturnType,
  type SignableMessage,
  type TransactionSerializable,
  type TypedDataDefinition,
} from "viem";
import { toAccount } from "viem/accounts";
import { hashAuthorization } from "viem/utils";
import { defined } from "../protocol/defined";
import { ClientError } from "./errors";
import { askPkp, notSigned, portable, textOf, typesOf, type PkpOptions, type SigningAction } from "./signer/pkp";

export type { ActionInstead, PkpOptions, SigningAction } from "./signer/pkp";
export { STANDARD_ACTIONS, type StandardAction } from "./standardActions";

export interface AccountOptions extends PkpOptions {
  /** Counts nonces of transactions that are sent at the same time: viem's `nonceManager`. */
  readonly nonceManager?: NonceManager;
}

/** @throws ClientError `invalid_argument` when `pkpId` is not an address. */
export function toKeywrightAccount(given: AccountOptions): LocalAccount {
  if (!isAddress(given.pkpId, { strict: false }))
    throw new ClientError("invalid_argument", "pkpId must be the PKP's address: 0x and 40 hex digits.");
  const address = getAddress(given.pkpId);
  const options = { ...given, pkpId: address };
  const source: CustomSource = {
    address,
    sign: ({ hash }) => signed(options, "digest", { digest: hash }, hash),
    signMessage: ({ message }) => signMessage(options, message),
    signTypedData: (definition) => signTypedData(options, definition as TypedDataDefinition),
    signTransaction: (transaction, more) =>
      signTransaction(options, transaction, (more?.serializer ?? serializeTransaction) as Serialize),
    signAuthorization: (request) => signAuthorization(options, request),
    ...defined({ nonceManager: given.nonceManager }),
  };
  return toAccount(source);
}

type Serialize = SerializeTransactionFn<TransactionSerializable>;
type Signing = PkpOptions & { readonly pkpId: Address };

async function signed(options: Signing, name: SigningAction, params: Record<string, unknown>, hash: Hex): Promise<Hex> {
  const signature = await askPkp(options, name, params);
  if (signature.length !== 132 || (await recoveredFrom(hash, signature)) !== options.pkpId) throw notSigned(name);
  return signature;
}

async function signMessage(options: Signing, message: SignableMessage): Promise<Hex> {
  const bytes = bytesOf(message);
  const text = textOf(bytes);
  const hash = hashMessage({ raw: bytes });
  return text === undefined
    ? signed(options, "messageBytes", { bytes: portable(bytes) }, hash)
    : signed(options, "message", { message: text }, hash);
}

async function signTypedData(options: Signing, definition: TypedDataDefinition): Promise<Hex> {
  const { domain = {}, types, primaryType, message } = definition as unknown as TypedDataParts;
  const params = {
    domain: portable(domain),
    types: typesOf(types, primaryType),
    primaryType,
    message: portable(message),
  };
  return signed(options, "typedData", params, hashTypedData(definition));
}

interface TypedDataParts {
  readonly domain?: object;
  readonly types: Parameters<typeof typesOf>[0];
  readonly primaryType: string;
  readonly message: object;
}

async function signTransaction(
  options: Signing,
  transaction: TransactionSerializable,
  serialize: Serialize,
): Promise<Hex> {
  // The sidecars of blobs are sent along and not signed.
  const unsigned = await serialize(transaction.type === "eip4844" ? { ...transaction, sidecars: false } : transaction);
  const signature = signatureIn(await askPkp(options, "transaction", { transaction: fieldsOf(transaction) }));
  if ((await recoveredFrom(keccak256(unsigned), signature)) !== options.pkpId) throw notSigned("transaction");
  return serialize(transaction, signature);
}

async function signAuthorization(
  options: Signing,
  { address, contractAddress, chainId, nonce }: AuthorizationRequest,
): Promise<SignAuthorizationReturnType> {
  const authorized = { address: contractAddress ?? address, chainId, nonce };
  const {
    r,
    s,
    yParity = 0,
  } = parseSignature(
    await signed(options, "authorization", { authorization: authorized }, hashAuthorization(authorized)),
  );
  return { ...authorized, r, s, yParity, v: BigInt(27 + yParity) };
}

function bytesOf(message: SignableMessage): Uint8Array {
  if (typeof message === "string") return toBytes(message);
  return typeof message.raw === "string" ? hexToBytes(message.raw) : message.raw;
}

async function recoveredFrom(hash: Hex, signature: Hex | Signature): Promise<string | undefined> {
  return recoverAddress({ hash, signature }).catch(() => undefined);
}

function signatureIn(raw: Hex): Signature {
  try {
    const { r, s, yParity, v } = parseTransaction(raw);
    if (r !== undefined && s !== undefined) {
      const parity = yParity ?? (Number((v ?? 27n) - 27n) & 1 ? 1 : 0);
      return { r: padded(r), s: padded(s), yParity: parity, v: v ?? BigInt(27 + parity) } as Signature;
    }
  } catch {
    // Reported below.
  }
  throw notSigned("transaction");
}

const padded = (value: Hex): Hex => `0x${value.slice(2).padStart(64, "0")}`;

const TYPES: Readonly<Record<string, number>> = { legacy: 0, eip2930: 1, eip1559: 2, eip4844: 3, eip7702: 4 };

/** Maps viem's field names to the action's. */
function fieldsOf(transaction: TransactionSerializable): unknown {
  const { chainId, nonce, gas, to, value, data, accessList, maxFeePerBlobGas, blobVersionedHashes, authorizationList } =
    transaction as AnyTransaction;
  const type = TYPES[getTransactionType(transaction)];
  if (type === undefined)
    throw new ClientError("invalid_argument", `The transaction type ${String(transaction.type)} is not known here.`);
  if (chainId === undefined)
    throw new ClientError(
      "invalid_argument",
      "The transaction needs a chainId: without one its signature is good on every chain.",
    );
  const { gasPrice, maxFeePerGas, maxPriorityFeePerGas } = transaction as AnyTransaction;
  // A node that fills transactions in may give both kinds of price; sign only those of the type.
  const price = type < 2 ? { gasPrice } : { maxFeePerGas, maxPriorityFeePerGas };
  const fields = {
    type,
    chainId,
    nonce: nonce ?? 0,
    gasLimit: gas ?? 0,
    to,
    value,
    data,
    ...price,
    accessList,
    maxFeePerBlobGas,
    blobVersionedHashes,
  };
  const authorizations = (authorizationList as readonly AnyTransaction[] | undefined)?.map(authorizationFields);
  return portable(
    Object.fromEntries(
      Object.entries({ ...fields, authorizationList: authorizations }).filter(
        ([, one]) => one !== null && one !== undefined,
      ),
    ),
  );
}

type AnyTransaction = Readonly<Record<string, unknown>>;

function authorizationFields({ address, contractAddress, chainId, nonce, r, s, yParity, v }: AnyTransaction): object {
  const signature = { r: padded(r as Hex), s: padded(s as Hex), yParity: yParity ?? Number(v) - 27 };
  return { address: address ?? contractAddress, chainId, nonce, signature };
}
