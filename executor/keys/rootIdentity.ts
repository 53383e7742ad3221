/**
 * The Ed25519 key that stands for the root: derived for this purpose alone and under no contract's namespace, so that
 * the contract can be deployed with the commitment to it.
 */
import { rootCommitmentOf, rootStatement, type RootStatement } from "../../protocol/rootKey";
import type { Hash32 } from "../../protocol/ids";
import { deriveSymmetric } from "./derive";
import { ed25519PublicKey, signEd25519 } from "./ed25519";

/** No contract's: those have 32 bytes. */
const NO_NAMESPACE = Buffer.alloc(0);
const ONLY = [Buffer.alloc(0)];

export interface RootIdentity {
  /** 0x and 64 hex digits. */
  readonly publicKey: string;
  readonly commitment: Hash32;
}

export function rootIdentityOf(root: Buffer): RootIdentity {
  const publicKey = withRootSeed(root, (seed) => `0x${ed25519PublicKey(seed).toString("hex")}`);
  return { publicKey, commitment: rootCommitmentOf(publicKey) };
}

/** The root's word for the statement key of a namespace, for the config document. */
export function rootStatementOf(root: Buffer, keyNamespace: Hash32, statementKey: string): RootStatement {
  const { publicKey, commitment } = rootIdentityOf(root);
  const signature = withRootSeed(root, (seed) => signEd25519(seed, rootStatement(keyNamespace, statementKey)));
  return { commitment, public_key: publicKey, signature: `0x${signature.toString("hex")}` };
}

function withRootSeed<T>(root: Buffer, use: (seed: Buffer) => T): T {
  const seed = deriveSymmetric(root, NO_NAMESPACE, "root", ONLY);
  try {
    return use(seed);
  } finally {
    seed.fill(0);
  }
}
