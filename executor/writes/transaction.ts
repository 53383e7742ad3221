/**
 * Signs EIP-1559 transactions as bytes. ethers' Transaction encodes the calldata of a batch as text, three times: a
 * millisecond each.
 */
import { RLP } from "@ethereumjs/rlp";
import { getBytes, keccak256 } from "ethers";
import type { EcdsaSignature } from "../keys/secp256k1";
import { bytesOfHex } from "../../protocol/hex";
import type { ExecutorAnswer } from "../../protocol/executor";
import type { Address } from "../../protocol/ids";

export interface TransactionFields {
  readonly chainId: bigint;
  readonly nonce: number;
  readonly maxPriorityFeePerGas: bigint;
  readonly maxFeePerGas: bigint;
  readonly gasLimit: bigint;
  readonly to: Address;
  readonly value: bigint;
  readonly data: Uint8Array;
}

const TYPE = Uint8Array.of(2);

/** Source: EIP-1559. `sign` gets the 32-byte digest. */
export function signTransaction(
  fields: TransactionFields,
  sign: (digest: Uint8Array) => EcdsaSignature,
): ExecutorAnswer<"signAsPayer"> {
  const { chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gasLimit, to, value, data } = fields;
  const payload = [chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gasLimit, bytesOfHex(to), value, data, []];
  const { r, s, yParity } = sign(getBytes(keccak256(envelope(payload))));
  const signed = envelope([...payload, yParity, BigInt(r), BigInt(s)]);
  return { rawTransaction: `0x${signed.toString("hex")}`, hash: keccak256(signed) };
}

const envelope = (payload: Parameters<typeof RLP.encode>[0]): Buffer => Buffer.concat([TYPE, RLP.encode(payload)]);
