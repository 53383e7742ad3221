/**
 * The forward request of OpenZeppelin's ERC2771Forwarder: an owner signs it so that the service sends the call and pays
 * the gas. Without validation (forward.ts).
 */
import type { Address } from "./ids";

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
  /** Always the account contract. */
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

/** The EIP-712 domain of a deployment's forwarder: its name contains the service's name, version 1. */
export interface ForwardDomain {
  readonly name: string;
  readonly version: "1";
  readonly chainId: bigint;
  readonly verifyingContract: Address;
}

export const FORWARD_TYPES = { ForwardRequest: [...FORWARD_FIELDS] };
