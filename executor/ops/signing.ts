/**
 * Signatures for a running action: ECDSA in Ethereum's forms, then those on the other curves. The key stays on the
 * host; only a hex string is returned.
 */
import { Transaction, accessListify, authorizationify, getBytes, hashMessage } from "ethers";
import { parseAddress, type PkpId } from "../../protocol/ids";
import { serializeSignature, signDigest as sign } from "../keys/secp256k1";
import type { OpArguments, TransactionFields } from "./arguments";
import { encoded, OpRefusal } from "./refusal";
import { typedDataDigest, type TypedDataLimits } from "./typedData";
import { signSchnorr, withTaprootSecret } from "../keys/bip340";
import { signEd25519 } from "../keys/ed25519";
import { p256Digest, signP256 } from "../keys/p256";

/** EIP-1559, EIP-4844 and EIP-7702. */
const FEE_TYPE = 2;
const BLOB_TYPE = 3;
const SET_CODE_TYPE = 4;

/** EIP-191: "\x19Ethereum Signed Message:\n", the length, and the text's UTF-8 bytes. */
export function signMessage(secret: Buffer, { message }: OpArguments<"signMessage">): string {
  return signature(
    secret,
    encoded("message", () => hashMessage(message)),
  );
}

export function signDigest(secret: Buffer, { digest }: OpArguments<"signDigest">): string {
  return signature(secret, digest);
}

/** EIP-712. */
export function signTypedData(
  secret: Buffer,
  typedData: OpArguments<"signTypedData">,
  limits: TypedDataLimits,
): string {
  return signature(secret, typedDataDigest(typedData, limits));
}

/** The raw signed transaction, ready to be sent. */
export function signTransaction(secret: Buffer, { pkpId, transaction }: OpArguments<"signTransaction">): string {
  const { unsigned, digest } = encoded("transaction", () => unsignedTransaction(transaction, pkpId));
  unsigned.signature = sign(secret, digest);
  return encoded("transaction", () => unsigned.serialized);
}

function signature(secret: Buffer, digest: string): string {
  return serializeSignature(sign(secret, getBytes(digest)));
}

function unsignedTransaction(given: TransactionFields, pkpId: PkpId): { unsigned: Transaction; digest: Uint8Array } {
  const { from, to, accessList, authorizationList, ...fields } = given;
  if (from !== undefined && from !== null && parseAddress(from) !== pkpId)
    throw invalid("transaction.from is not the PKP's address");
  const unsigned = Transaction.from({
    ...fields,
    ...(to === undefined || to === null ? {} : { to: requireAddress(to) }),
    ...(accessList === undefined ? {} : { accessList: accessListify(accessList) }),
    ...(authorizationList === undefined ? {} : { authorizationList: authorizationList.map(authorizationify) }),
  });
  requireFieldsOfType(unsigned.inferType(), given);
  return { unsigned, digest: getBytes(unsigned.unsignedHash) };
}

/**
 * ethers drops fields that a type does not have, fills in missing ones, and uses the zero address where a type requires
 * a recipient: reject what would sign something other than intended.
 */
function requireFieldsOfType(
  type: number,
  { to, data, gasPrice, maxFeePerBlobGas, blobVersionedHashes, authorizationList }: TransactionFields,
): void {
  if (gasPrice !== undefined && type >= FEE_TYPE)
    throw invalid(`gasPrice belongs to types 0 and 1; type ${type} has maxFeePerGas`);
  const blobFields = [maxFeePerBlobGas, blobVersionedHashes].filter((field) => field !== undefined).length;
  if (blobFields !== (type === BLOB_TYPE ? 2 : 0))
    throw invalid("maxFeePerBlobGas and blobVersionedHashes belong to type 3, which needs both");
  if ((authorizationList !== undefined) !== (type === SET_CODE_TYPE))
    throw invalid("authorizationList belongs to type 4, which needs it");
  if (to !== undefined && to !== null) return;
  if (type === BLOB_TYPE || type === SET_CODE_TYPE) throw invalid(`type ${type} needs to: it cannot make a contract`);
  // A contract without code would keep the value for ever.
  if ((data ?? "0x") === "0x") throw invalid("to is missing: without it the transaction makes a contract of its data");
}

function requireAddress(text: string): string {
  const address = parseAddress(text);
  if (address === undefined) throw invalid("transaction.to must be an address: 0x and 40 hex digits, or left out");
  return address;
}

function invalid(message: string): OpRefusal {
  return new OpRefusal("invalid_arguments", message);
}

/** RFC 8032 (pure Ed25519): signs the message itself, without a prefix. */
export function ed25519Signature(secret: Buffer, { message }: { readonly message: Buffer }): string {
  return hex(signEd25519(secret, message));
}

/**
 * BIP-340. With `merkleRoot` the key is the taproot output key: tweaked by that root or, if it is empty, by the
 * internal key alone.
 */
export function schnorrSignature(
  secret: Buffer,
  { digest, merkleRoot }: { readonly digest: Buffer; readonly merkleRoot?: Buffer | undefined },
): string {
  if (merkleRoot === undefined) return hex(signSchnorr(secret, digest));
  return hex(withTaprootSecret(secret, merkleRoot, (tweaked) => signSchnorr(tweaked, digest)));
}

/** ECDSA with low s over the digest, or over SHA-256 of the message: r ‖ s. */
export function p256Signature(
  secret: Buffer,
  { digest, message }: { readonly digest?: Buffer | undefined; readonly message?: Buffer | undefined },
): string {
  const signed = digest ?? (message === undefined ? undefined : p256Digest(message));
  if (signed === undefined) throw new OpRefusal("invalid_arguments", "signP256 needs digest or message");
  return hex(signP256(secret, signed));
}

function hex(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes).toString("hex")}`;
}
