/** ECDSA signatures in Ethereum's forms that a running action asks for. The key stays on the host; what goes back is one hex string. */
import { Transaction, TypedDataEncoder, accessListify, authorizationify, getBytes, hashMessage, type TypedDataField } from "ethers";
import { parseAddress, type PkpId } from "../../protocol/ids";
import { serializeSignature, signDigest as sign } from "../keys/secp256k1";
import type { OpArguments, TransactionFields } from "./arguments";
import { OpRefusal } from "./refusal";

const MESSAGE_DOMAIN_TYPE = "EIP712Domain";
/** EIP-4844 and EIP-7702. */
const BLOB_TYPE = 3;
const SET_CODE_TYPE = 4;

/** EIP-191: the text's UTF-8 bytes behind "\x19Ethereum Signed Message:\n" and their length. */
export function signMessage(secret: Buffer, { message }: OpArguments<"signMessage">): string {
  return signature(secret, hashMessage(message));
}

export function signDigest(secret: Buffer, { digest }: OpArguments<"signDigest">): string {
  return signature(secret, digest);
}

/** EIP-712. `types` may contain EIP712Domain, as wallets write it; `primaryType` is only compared with what the types say. */
export function signTypedData(secret: Buffer, { domain, types, message, primaryType }: OpArguments<"signTypedData">): string {
  return signature(secret, typedDataHash(domain, types, message, primaryType));
}

/** The raw signed transaction, ready to be sent. */
export function signTransaction(secret: Buffer, { pkpId, transaction }: OpArguments<"signTransaction">): string {
  const unsigned = unsignedTransaction(transaction, pkpId);
  unsigned.signature = sign(secret, getBytes(unsigned.unsignedHash));
  return unsigned.serialized;
}

function signature(secret: Buffer, digest: string): string {
  return serializeSignature(sign(secret, getBytes(digest)));
}

function typedDataHash(
  domain: Record<string, unknown>,
  types: Record<string, { name: string; type: string }[]>,
  message: Record<string, unknown>,
  primaryType: string | undefined,
): string {
  const structs: Record<string, TypedDataField[]> = Object.fromEntries(Object.entries(types).filter(([name]) => name !== MESSAGE_DOMAIN_TYPE));
  try {
    const encoder = TypedDataEncoder.from(structs);
    if (primaryType !== undefined && encoder.primaryType !== primaryType) {
      throw new Error(`primaryType is ${primaryType}, but the types make it ${encoder.primaryType}`);
    }
    return TypedDataEncoder.hash(domain, structs, message);
  } catch (error) {
    throw new OpRefusal("invalid_arguments", `the typed data cannot be encoded: ${reason(error)}`);
  }
}

function unsignedTransaction(given: TransactionFields, pkpId: PkpId): Transaction {
  const { from, to, accessList, authorizationList, ...fields } = given;
  if (from !== undefined && from !== null && parseAddress(from) !== pkpId)
    throw new OpRefusal("invalid_arguments", "transaction.from is not the PKP's address");
  try {
    const unsigned = Transaction.from({
      ...fields,
      ...(to === undefined || to === null ? {} : { to: requireAddress(to) }),
      ...(accessList === undefined ? {} : { accessList: accessListify(accessList) }),
      ...(authorizationList === undefined ? {} : { authorizationList: authorizationList.map(authorizationify) }),
    });
    requireFieldsOfType(unsigned.type, given);
    return unsigned;
  } catch (error) {
    if (error instanceof OpRefusal) throw error;
    throw new OpRefusal("invalid_arguments", `the transaction cannot be encoded: ${reason(error)}`);
  }
}

/**
 * The library leaves out what a type does not have, fills in what it lacks, and writes the zero address where a type must have a recipient: something else
 * than meant would be signed.
 */
function requireFieldsOfType(type: number | null, { to, maxFeePerBlobGas, blobVersionedHashes, authorizationList }: TransactionFields): void {
  const blobFields = [maxFeePerBlobGas, blobVersionedHashes].filter((field) => field !== undefined).length;
  if (blobFields !== (type === BLOB_TYPE ? 2 : 0)) throw wrong("maxFeePerBlobGas and blobVersionedHashes belong to type 3, which needs both");
  if ((authorizationList !== undefined) !== (type === SET_CODE_TYPE)) throw wrong("authorizationList belongs to type 4, which needs it");
  if ((type === BLOB_TYPE || type === SET_CODE_TYPE) && (to === undefined || to === null)) throw wrong(`type ${type} needs to: it cannot make a contract`);
}

function wrong(what: string): OpRefusal {
  return new OpRefusal("invalid_arguments", `the transaction cannot be encoded: ${what}`);
}

function requireAddress(text: string): string {
  const address = parseAddress(text);
  if (address === undefined) throw new OpRefusal("invalid_arguments", "transaction.to must be an address: 0x and 40 hex digits, or left out");
  return address;
}

/** ethers puts the offending values behind the first parenthesis; the author needs the sentence before it. */
function reason(error: unknown): string {
  return error instanceof Error ? (error.message.split(" (")[0] ?? "").slice(0, 300) : "unknown reason";
}
