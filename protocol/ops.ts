/**
 * The ops: what the keyholder does for a running action. One row each; the contract's bits, the functions of `Actions`
 * with their types, the limits on arguments and the dashboard's texts derive from it. Beside its row a new op needs
 * its schema (`executor/ops/arguments.ts`), its code (`executor/ops/ops.ts`) and its example in docs/actions.md.
 *
 * Part of every isolate: no imports.
 */
interface OpRow {
  /** For the author of an action, in an editor. */
  readonly purpose: string;
  readonly required: readonly string[];
  readonly optional?: readonly string[];
  /** The field that must be text: bytes would become the text of their hex, and something unintended be signed. */
  readonly text?: string;
  /** The field that may be text or bytes; the keyholder receives which. */
  readonly bytesOrText?: string;
  /** The largest arguments; 4 KiB without it. `none`: as large as a child's message. */
  readonly limit?: "signBytes" | "typedDataBytes" | "none";
  /** The answer is a private key. */
  readonly exposesKey?: true;
  /**
   * The bit with which a PKP's owner denies the op on chain (`setPkpOps`), and what the dashboard calls it. Bits are
   * never reassigned; a new op takes the next one, and is added to the contract's documentation of `setPkpOps`.
   */
  readonly denial?: { readonly bit: bigint; readonly label: string };
}

/** Ops that can be denied come first, in the order of their bits. */
export const OPS = {
  signMessage: {
    purpose: "EIP-191: signs the text's UTF-8 bytes. The signature, 65 bytes of hex.",
    required: ["pkpId", "message"],
    text: "message",
    limit: "signBytes",
    denial: { bit: 1n, label: "Sign messages" },
  },
  signTypedData: {
    purpose: "EIP-712. The signature, 65 bytes of hex.",
    required: ["pkpId", "domain", "types", "message"],
    optional: ["primaryType"],
    limit: "typedDataBytes",
    denial: { bit: 2n, label: "Sign typed data (EIP-712)" },
  },
  signTransaction: {
    purpose: "The raw signed transaction, ready to be sent.",
    required: ["pkpId", "transaction"],
    limit: "signBytes",
    denial: { bit: 4n, label: "Sign transactions" },
  },
  signDigest: {
    purpose: "Signs 32 bytes as they are. The signature, 65 bytes of hex.",
    required: ["pkpId", "digest"],
    denial: { bit: 8n, label: "Sign 32 bytes whose meaning cannot be checked" },
  },
  Encrypt: {
    purpose: "Encrypts a text for the account and the PKP.",
    required: ["pkpId", "message"],
    text: "message",
    limit: "none",
    denial: { bit: 16n, label: "Encrypt" },
  },
  Decrypt: {
    purpose: "Decrypts what was encrypted for the account and the PKP.",
    required: ["pkpId", "ciphertext"],
    text: "ciphertext",
    limit: "none",
    denial: { bit: 32n, label: "Decrypt" },
  },
  getPrivateKey: {
    purpose: "The key itself, where the deployment allows it. Prefer the signing functions.",
    required: ["pkpId"],
    exposesKey: true,
    denial: { bit: 64n, label: "Read the private key itself" },
  },
  signEd25519: {
    purpose: "Ed25519 over a text or bytes.",
    required: ["pkpId", "message"],
    bytesOrText: "message",
    limit: "signBytes",
    denial: { bit: 128n, label: "Sign with Ed25519 (Solana and others)" },
  },
  signSchnorr: {
    purpose: "BIP-340 over 32 bytes, with the taproot tweak when a merkle root is given.",
    required: ["pkpId", "digest"],
    optional: ["merkleRoot"],
    denial: { bit: 256n, label: "Sign with Schnorr (Bitcoin Taproot)" },
  },
  signP256: {
    purpose: "ECDSA over P-256.",
    required: ["pkpId"],
    optional: ["digest", "message"],
    bytesOrText: "message",
    limit: "signBytes",
    denial: { bit: 512n, label: "Sign with P-256" },
  },
  getPublicKey: { purpose: "The PKP's public key on a curve.", required: ["pkpId", "curve"] },
  getActionPrivateKey: {
    purpose: "A key bound to the CID of the running code.",
    required: [],
    exposesKey: true,
  },
  signEd25519AsAction: {
    purpose: "Ed25519 with the action's own key.",
    required: ["message"],
    bytesOrText: "message",
    limit: "signBytes",
  },
  signSchnorrAsAction: {
    purpose: "BIP-340 with the action's own key.",
    required: ["digest"],
    optional: ["merkleRoot"],
  },
  signP256AsAction: {
    purpose: "P-256 with the action's own key.",
    required: [],
    optional: ["digest", "message"],
    bytesOrText: "message",
    limit: "signBytes",
  },
  getActionPublicKey: { purpose: "The public key of any action.", required: ["ipfsId"], optional: ["curve"] },
  getActionWalletAddress: { purpose: "The address of any action.", required: ["ipfsId"] },
  spend: {
    purpose: "Counts an amount against a budget of this code, before it is signed. What is left of the limit.",
    required: ["budget", "amount", "limit", "window"],
  },
} as const satisfies Record<string, OpRow>;

export type OpName = keyof typeof OPS;
type NameOf<Row> = { [N in OpName]: (typeof OPS)[N] extends Row ? N : never }[OpName];
/** An op that a PKP's owner can deny. */
export type PkpOp = NameOf<{ denial: object }>;

export const opRow = (name: OpName): OpRow => OPS[name];
export const isOpName = (name: string): name is OpName => Object.hasOwn(OPS, name);

// Marked so that the bundle of the isolates leaves them out.
export const OP_NAMES = /* @__PURE__ */ Object.keys(OPS) as OpName[];
export const PKP_OP_NAMES = /* @__PURE__ */ OP_NAMES.filter((name): name is PkpOp => "denial" in OPS[name]);

/** The bits of all known ops. */
const ALL_PKP_OPS = /* @__PURE__ */ opBits(PKP_OP_NAMES);

export function opBits(names: readonly PkpOp[]): bigint {
  return names.reduce((bits, name) => bits | OPS[name].denial.bit, 0n);
}

/** Names of the ops in a set, in the table's order; bits without an op appear as hex. */
export function opNames(bits: bigint): string[] {
  const known: string[] = PKP_OP_NAMES.filter((name) => isDenied(bits, name));
  for (let bit = ALL_PKP_OPS + 1n, rest = bits / bit; rest > 0n; bit <<= 1n, rest >>= 1n) {
    if (rest & 1n) known.push(`0x${bit.toString(16)}`);
  }
  return known;
}

export const isDenied = (deniedOps: bigint, op: PkpOp): boolean => (deniedOps & OPS[op].denial.bit) !== 0n;
