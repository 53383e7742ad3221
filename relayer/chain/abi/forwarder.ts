/** The forwarder's words: the calldata of its one view. What it is sent is made by `protocol/forward`. */
import type { Address } from "../../../protocol/ids";
import { ERC2771Forwarder__factory } from "../../../typechain-types";

const FORWARDER = ERC2771Forwarder__factory.createInterface();

export const noncesCall = (signer: Address): string => FORWARDER.encodeFunctionData("nonces", [signer]);
