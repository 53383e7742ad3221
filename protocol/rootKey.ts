/**
 * The root key's public side: which root a contract is bound to, and which statement key that root vouches for.
 * Source: docs/verify.md "The root key".
 */
import { AbiCoder, keccak256 } from "ethers";
import { z } from "zod";
import type { Hash32 } from "./ids";

const STATEMENT_TAG = "root/v1\n";
const hex = (bytes: number): z.ZodString => z.string().regex(new RegExp(`^0x[0-9a-f]{${2 * bytes}}$`));

/** As `root` of the config document. */
export const rootStatementSchema = z.strictObject({
  commitment: hex(32),
  /** The Ed25519 key that the root derives for this purpose alone. */
  public_key: hex(32),
  /** Its signature over `rootStatement`. */
  signature: hex(64),
});
export type RootStatement = z.infer<typeof rootStatementSchema>;

/** The commitment that the contract stores. It depends on no contract: it is known before there is one. */
export function rootCommitmentOf(publicKey: string): Hash32 {
  return keccak256(
    AbiCoder.defaultAbiCoder().encode(["string", "bytes32"], ["keywright/root/v1", publicKey]),
  ) as Hash32;
}

/** What the root signs at each start: which key makes statements for it under a contract. */
export const rootStatement = (keyNamespace: string, statementKey: string): Buffer =>
  Buffer.from(`${STATEMENT_TAG}${keyNamespace}\n${statementKey}`, "utf8");
