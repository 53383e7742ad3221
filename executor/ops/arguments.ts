/** Validates the arguments of every op before use. Bigints and bytes arrive as decimal text and hex. */
import { computeAddress } from "ethers";
import { z } from "zod";
import { BUDGET_NAME, MAX_AMOUNT, WINDOWS } from "../../protocol/budgetTerms";
import { parseCid } from "../../protocol/cid";
import { CURVES } from "../../protocol/curves";
import { parseAddress, type Address, type Cid, type PkpId } from "../../protocol/ids";
import type { OpName } from "../../protocol/ops";

const PUBLIC_KEY = /^0x(04[0-9a-fA-F]{128}|0[23][0-9a-fA-F]{64})$/;
/** Older programs name a PKP by its public key. */
function addressOfKey(text: string): Address | undefined {
  try {
    return PUBLIC_KEY.test(text) ? (computeAddress(text) as Address) : undefined;
  } catch {
    return undefined;
  }
}
const pkpId = z.string().transform((text, context): PkpId => {
  const address = parseAddress(text) ?? addressOfKey(text);
  if (address !== undefined) return address as Address as PkpId;
  context.addIssue({ code: "custom", message: "must be a PKP's wallet address: 0x and 40 hex digits" });
  return z.NEVER;
});
const ipfsId = z.string().transform((text, context): Cid => {
  const cid = parseCid(text);
  if (cid !== undefined) return cid;
  context.addIssue({ code: "custom", message: "must be a CIDv0, or a CIDv1 of dag-pb and sha2-256" });
  return z.NEVER;
});
const MAX_UINT64 = 2n ** 64n - 1n;
const MAX_UINT256 = 2n ** 256n - 1n;
/** EIP-2294: the largest chain id that fits the signature of a type 0 transaction. */
const MAX_CHAIN_ID = 2n ** 63n - 37n;
const hexData = z.string().regex(/^0x([0-9a-fA-F]{2})*$/, "must be 0x and an even number of hex digits");
const HASH32 = /^0x[0-9a-fA-F]{64}$/;
const hash32 = z.string().regex(HASH32, "must be 0x and 64 hex digits");
/** Lone surrogates have no UTF-8 form: they would not survive a round trip. */
const wellFormed = z
  .string()
  .refine((text) => text.isWellFormed(), "holds half a surrogate pair, which has no UTF-8 form");
const LOOKS_LIKE_HEX = /^0x([0-9a-fA-F]{2})+$/;
/**
 * Text stands for its UTF-8 bytes; bytes come as `{ bytes: hex }`. Text that looks like hex is refused as ambiguous.
 */
const bytesOrText = z
  .union([wellFormed, z.strictObject({ bytes: hexData })], "must be text or bytes")
  .transform((value, context): Buffer => {
    if (typeof value !== "string") return Buffer.from(value.bytes.slice(2), "hex");
    if (!LOOKS_LIKE_HEX.test(value)) return Buffer.from(value, "utf8");
    context.addIssue({
      code: "custom",
      message:
        "is text that looks like hex, which may mean two things: give bytes as a Uint8Array, for example by " +
        "ethers.getBytes",
    });
    return z.NEVER;
  });
const bytes32 = hash32.transform((text) => Buffer.from(text.slice(2), "hex"));
/** Empty, or a Merkle root. */
const merkleRoot = z
  .string()
  .regex(/^0x([0-9a-fA-F]{64})?$/, "must be 0x (no scripts) or 0x and 64 hex digits")
  .transform((text) => Buffer.from(text.slice(2), "hex"));
const curve = z.enum(CURVES, `must be one of ${CURVES.join(", ")}`);
const p256Input = { digest: bytes32.optional(), message: bytesOrText.optional() };
const oneOfBoth = ({ digest, message }: { digest?: Buffer | undefined; message?: Buffer | undefined }): boolean =>
  (digest === undefined) !== (message === undefined);
const ONE_OF_BOTH = "exactly one of digest (32 bytes, signed as they are) and message (hashed with SHA-256) is needed";
const record = z.record(z.string(), z.unknown());

/** A number, or text in decimal or 0x hex, as ethers accepts for quantities. */
const quantity = z.union([
  z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER).transform(BigInt),
  z
    .string()
    .regex(/^(0x[0-9a-fA-F]{1,64}|0|[1-9][0-9]{0,77})$/, "must be a whole number")
    .transform(BigInt),
]);
const word = quantity.refine((value) => value <= MAX_UINT256, "is above 2^256 - 1");
const smallNumber = quantity
  .refine((value) => value <= BigInt(Number.MAX_SAFE_INTEGER), "is too large")
  .transform(Number);
/** More than any chain accepts in one transaction today. */
const MAX_BLOBS = 64;
const MAX_AUTHORIZATIONS = 256;
const hexAddress = z.string().regex(/^0x[0-9a-fA-F]{40}$/, "must be 0x and 40 hex digits");
/** One check of the list: it may have tens of thousands of elements, and each wrong one would be an issue. */
const storageKeys = z
  .custom<string[]>(
    (keys) => Array.isArray(keys) && keys.every((key) => typeof key === "string" && HASH32.test(key)),
    "must be a list of texts of 0x and 64 hex digits",
  )
  .meta({ type: "array", items: { type: "string" } });
const accessList = z.array(z.strictObject({ address: z.string(), storageKeys })).max(1_000);

const authorizationSignature = z.union(
  [
    z.string().regex(/^0x[0-9a-fA-F]{130}$/),
    z.strictObject({ r: hash32, s: hash32, yParity: smallNumber.pipe(z.union([z.literal(0), z.literal(1)])) }),
  ],
  "must be 65 bytes of hex, or { r, s, yParity }",
);
const authorization = z.strictObject({
  address: hexAddress,
  chainId: word,
  nonce: quantity.refine((value) => value <= MAX_UINT64, "is above 2^64 - 1"),
  signature: authorizationSignature,
});
const versionedHash = z
  .string()
  .regex(/^0x01[0-9a-fA-F]{62}$/, "must be the versioned hash of a KZG commitment: 0x01 and 62 hex digits");

/** Types 0 to 4; `chainId` is required, so that no signature is valid on every chain. */
const transaction = z.strictObject({
  type: smallNumber
    .pipe(z.union([z.literal(0), z.literal(1), z.literal(2), z.literal(3), z.literal(4)], "must be 0, 1, 2, 3 or 4"))
    .optional(),
  chainId: quantity.refine(
    (value) => value > 0n && value <= MAX_CHAIN_ID,
    "must be the id of a chain, above 0 and within EIP-2294",
  ),
  nonce: smallNumber,
  gasLimit: word,
  to: z.string().nullish(),
  from: z.string().nullish(),
  value: word.optional(),
  data: hexData.optional(),
  gasPrice: word.optional(),
  maxFeePerGas: word.optional(),
  maxPriorityFeePerGas: word.optional(),
  accessList: accessList.optional(),
  maxFeePerBlobGas: word.optional(),
  blobVersionedHashes: z.array(versionedHash).min(1).max(MAX_BLOBS).optional(),
  authorizationList: z.array(authorization).min(1).max(MAX_AUTHORIZATIONS).optional(),
});
export type TransactionFields = z.infer<typeof transaction>;

const typeFields = z.array(z.object({ name: z.string(), type: z.string() }));

/** A bigint of the action arrives as decimal text; a number may have lost digits. */
const amount = z
  .string("must be a whole number as text, or a bigint")
  .regex(/^(0|[1-9][0-9]{0,38})$/, "must be a whole number as text: digits, without a leading zero")
  .transform(BigInt)
  .refine((value) => value <= MAX_AMOUNT, "is above 2^128 - 1");

export const OP_ARGUMENTS = {
  signMessage: z.strictObject({ pkpId, message: wellFormed }),
  signTypedData: z.strictObject({
    pkpId,
    domain: record,
    types: z.record(z.string(), typeFields),
    message: record,
    primaryType: z.string().optional(),
  }),
  signTransaction: z.strictObject({ pkpId, transaction }),
  signDigest: z.strictObject({ pkpId, digest: hash32 }),
  signEd25519: z.strictObject({ pkpId, message: bytesOrText }),
  signSchnorr: z.strictObject({ pkpId, digest: bytes32, merkleRoot: merkleRoot.optional() }),
  signP256: z.strictObject({ pkpId, ...p256Input }).refine(oneOfBoth, ONE_OF_BOTH),
  getPublicKey: z.strictObject({ pkpId, curve }),
  Encrypt: z.strictObject({ pkpId, message: wellFormed }),
  Decrypt: z.strictObject({ pkpId, ciphertext: z.string() }),
  getPrivateKey: z.strictObject({ pkpId }),
  getActionPrivateKey: z.strictObject({}),
  signEd25519AsAction: z.strictObject({ message: bytesOrText }),
  signSchnorrAsAction: z.strictObject({ digest: bytes32, merkleRoot: merkleRoot.optional() }),
  signP256AsAction: z.strictObject(p256Input).refine(oneOfBoth, ONE_OF_BOTH),
  getActionPublicKey: z.strictObject({ ipfsId, curve: curve.default("secp256k1") }),
  getActionWalletAddress: z.strictObject({ ipfsId }),
  spend: z.strictObject({
    budget: z
      .string()
      .regex(
        BUDGET_NAME,
        "must be 1 to 31 letters, digits, dots, colons, dashes and underscores, first a letter or digit",
      ),
    amount,
    limit: amount,
    window: z.enum(WINDOWS, `must be one of ${WINDOWS.join(", ")}`),
  }),
} satisfies Record<OpName, z.ZodType>;
export type OpArguments<N extends OpName> = z.output<(typeof OP_ARGUMENTS)[N]>;

/** Paths contain names chosen by the action. */
const MAX_MESSAGE_CHARS = 500;

/** The first problem, with its path. */
export function whatIsWrong(error: z.ZodError): string {
  const issue = error.issues[0];
  if (issue === undefined) return "the arguments are wrong";
  const text = issue.path.length === 0 ? issue.message : `${issue.path.join(".")}: ${issue.message}`;
  return text.slice(0, MAX_MESSAGE_CHARS);
}
