import { AbiCoder, keccak256 } from "ethers";
import type { Address, Hash32 } from "./ids";

/**
 * The namespace that binds every key to its governing contract; the executor does not start if the contract's own value
 * differs. `keccak256(abi.encode("keywright/v1", chainId, contract))`, as in the contract's constructor.
 */
export function keyNamespaceOf(chainId: bigint, contract: Address): Hash32 {
  return keccak256(
    AbiCoder.defaultAbiCoder().encode(["string", "uint256", "address"], ["keywright/v1", chainId, contract]),
  ) as Hash32;
}
