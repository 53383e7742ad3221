/** Signatures a running action asks for. The key stays on the host; what goes back is one hex string. */
import { Transaction, accessListify, getBytes, hashMessage } from "ethers";
import { parseAddress, type PkpId } from "../../protocol/ids";
import { serializeSignature, signDigest as sign } from "../keys/secp256k1";
import type { OpArguments, TransactionFields } from "./arguments";
import { encoded } from "./encoded";
import { OpRefusal } from "./refusal";
import { typedDataDigest, type TypedDataLimits } from "./typedData";

/** EIP-191: the text's UTF-8 bytes behind "\x19Ethereum Signed Message:\n" and their length. */
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
export function signTypedData(secret: Buffer, typedData: OpArguments<"signTypedData">, limits: TypedDataLimits): string {
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

function unsignedTransaction({ from, to, accessList, ...fields }: TransactionFields, pkpId: PkpId): { unsigned: Transaction; digest: Uint8Array } {
  if (from !== undefined && from !== null && parseAddress(from) !== pkpId) throw invalid("transaction.from is not the PKP's address");
  const unsigned = Transaction.from({
    ...fields,
    ...(to === undefined || to === null ? {} : { to: requireAddress(to) }),
    ...(accessList === undefined ? {} : { accessList: accessListify(accessList) }),
  });
  // The library leaves a gas price out of a transaction that has none, and its author would sign another fee than was meant.
  if (fields.gasPrice !== undefined && unsigned.type === 2) throw invalid("gasPrice belongs to types 0 and 1; type 2 has maxFeePerGas");
  return { unsigned, digest: getBytes(unsigned.unsignedHash) };
}

function requireAddress(text: string): string {
  const address = parseAddress(text);
  if (address === undefined) throw invalid("transaction.to must be an address: 0x and 40 hex digits, or left out");
  return address;
}

function invalid(message: string): OpRefusal {
  return new OpRefusal("invalid_arguments", message);
}
