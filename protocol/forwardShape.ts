/** The forward request of OpenZeppelin's ERC2771Forwarder: what an owner signs so that the service sends his call and pays the gas. No checks here (forward.ts). */
import type { Address, Hash32 } from "./ids";

export const FORWARD_FIELDS = [
  { name: "from", type: "address" },
  { name: "to", type: "address" },
  { name: "value", type: "uint256" },
  { name: "gas", type: "uint256" },
  { name: "nonce", type: "uint256" },
  { name: "deadline", type: "uint48" },
  { name: "data", type: "bytes" },
] as const;

/** Numbers as decimal strings; `deadline` in unix seconds. */
export interface ForwardRequest {
  readonly from: Address;
  /** The account contract, always. */
  readonly to: Address;
  readonly value: string;
  readonly gas: string;
  readonly nonce: string;
  readonly deadline: string;
  readonly data: string;
}

export interface SignedForwardRequest extends ForwardRequest {
  /** 0x and 130 hex digits. */
  readonly signature: string;
}

/** The EIP-712 domain of a deployment's forwarder: name from the service's name, version 1. */
export interface ForwardDomain {
  readonly name: string;
  readonly version: "1";
  readonly chainId: bigint;
  readonly verifyingContract: Address;
}

export const FORWARD_TYPES = { ForwardRequest: [...FORWARD_FIELDS] };

export type ForwardDigest = Hash32;
