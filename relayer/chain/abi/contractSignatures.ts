/** ERC-1271: a contract says whether a signature is its own. */
import { Interface } from "ethers";

const ERC1271 = new Interface(["function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)"]);
/** The selector, padded to a word. */
const VALID = "0x1626ba7e".padEnd(66, "0");

export const isValidSignatureCall = (digest: string, signature: string): string =>
  ERC1271.encodeFunctionData("isValidSignature", [digest, signature]);

/** An address without code answers nothing. */
export const saysValid = (answer: unknown): boolean => answer === VALID;
