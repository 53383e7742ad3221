/**
 * Validates the typed-data envelope of the signature routes: canonical shape only, one primary type per endpoint.
 * Source: docs/conformance.md §2, §5.
 */
import { Signature, TypedDataEncoder, recoverAddress } from "ethers";
import { z } from "zod";
import { KeywrightError } from "./errors";
import { parseAddress, type Address } from "./ids";
import { WIRE_LIMITS } from "./limits";
import {
  DOMAIN_FIELDS,
  MESSAGE_FIELDS,
  type PrimaryType,
  type TypedData,
  type TypedDataDomain,
} from "./typedDataShape";

export * from "./typedDataShape";

const decimal = z.union([
  z.string().regex(/^(0|[1-9][0-9]{0,77})$/),
  z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER),
]);
const fieldList = z.array(z.strictObject({ name: z.string(), type: z.string() }));
const envelope = z.strictObject({
  types: z.record(z.string(), fieldList),
  primaryType: z.string(),
  domain: z.strictObject({ name: z.string(), version: z.string(), chainId: decimal }),
  message: z.strictObject({ address: z.string(), issuedAt: decimal }),
});

/**
 * Validates an envelope and its signature for one endpoint and returns the signing wallet.
 * @throws KeywrightError `typed_data_…` or `signature_…`, naming the first error; `typed_data_too_large` (413) above
 * 4,096 bytes.
 */
export function verifyTypedData(input: unknown, signature: unknown, expected: ExpectedTypedData): Address {
  const { address, digest } = claimedTypedData(input, expected);
  requireSignature(digest, signature, address);
  return address;
}

export interface ExpectedTypedData {
  readonly primaryType: PrimaryType;
  readonly domain: TypedDataDomain;
  readonly nowSeconds: number;
}

/** What an envelope says, unsigned: who is to have signed which digest. Errors as `verifyTypedData`. */
export function claimedTypedData(input: unknown, expected: ExpectedTypedData): { address: Address; digest: string } {
  const typedData = parseEnvelope(input);
  requireCanonicalTypes(typedData, typeNames(input), expected.primaryType);
  requireDomain(typedData, expected.domain);
  const address = requireMessage(typedData, expected.nowSeconds);
  const types = { [expected.primaryType]: [...MESSAGE_FIELDS] };
  return { address, digest: TypedDataEncoder.hash(typedData.domain, types, { ...typedData.message, address }) };
}

function parseEnvelope(input: unknown): TypedData {
  const bytes = Buffer.byteLength(JSON.stringify(input) ?? "", "utf8");
  if (bytes > WIRE_LIMITS.typedDataBytes) {
    throw new KeywrightError(
      "typed_data_too_large",
      `typed_data is ${bytes} bytes; at most ${WIRE_LIMITS.typedDataBytes} are accepted.`,
    );
  }
  const parsed = envelope.safeParse(input);
  if (!parsed.success) {
    const where = parsed.error.issues[0];
    throw new KeywrightError(
      "typed_data_malformed",
      `typed_data.${where?.path.join(".") ?? ""}: ${where?.message ?? "malformed"}`,
    );
  }
  return parsed.data;
}

/** From the unparsed input: the parser drops a member called `__proto__`. */
const typeNames = (input: unknown): string[] => Object.keys((input as { types: object }).types);

function requireCanonicalTypes(typedData: TypedData, names: readonly string[], primaryType: PrimaryType): void {
  if (typedData.primaryType !== primaryType) {
    throw new KeywrightError("typed_data_wrong_primary_type", `primaryType must be ${primaryType} here.`);
  }
  const canonical = { EIP712Domain: DOMAIN_FIELDS, [primaryType]: MESSAGE_FIELDS };
  const same =
    names.length === 2 &&
    Object.entries(canonical).every(
      ([name, fields]) => JSON.stringify(normalised(typedData.types[name])) === JSON.stringify(normalised(fields)),
    );
  if (!same) {
    throw new KeywrightError(
      "typed_data_types_mismatch",
      `types must be exactly EIP712Domain(name,version,chainId) and ${primaryType}(address,issuedAt), in this order.`,
    );
  }
}

function normalised(fields: readonly { name: string; type: string }[] | undefined): unknown {
  return fields?.map(({ name, type }) => [name, type]);
}

function requireDomain(typedData: TypedData, domain: TypedDataDomain): void {
  if (typedData.domain.name !== domain.name || typedData.domain.version !== domain.version) {
    throw new KeywrightError(
      "typed_data_wrong_domain",
      `domain must be name "${domain.name}", version "${domain.version}".`,
    );
  }
  if (BigInt(typedData.domain.chainId) !== domain.chainId) {
    throw new KeywrightError("typed_data_wrong_chain", `domain.chainId must be ${domain.chainId}.`);
  }
}

function requireMessage(typedData: TypedData, nowSeconds: number): Address {
  const address = parseAddress(typedData.message.address);
  if (address === undefined)
    throw new KeywrightError("typed_data_malformed", "typed_data.message.address is not an address.");
  const age = BigInt(Math.floor(nowSeconds)) - BigInt(typedData.message.issuedAt);
  const window = BigInt(WIRE_LIMITS.issuedAtWindowSeconds);
  if (age > window || age < -window) {
    throw new KeywrightError(
      "typed_data_expired",
      `issuedAt must be within ${window} seconds of the server's time (${Math.floor(nowSeconds)}).`,
    );
  }
  return address;
}

const SIGNATURE = /^0x[0-9a-fA-F]{130}$/;
const V_BY_PARITY: Readonly<Record<string, string>> = { "00": "1b", "01": "1c" };
const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

/**
 * Whether s of a 65-byte hex signature is in the lower half: the other half would be a second valid signature of the
 * message.
 */
export const isLowS = (signature: string): boolean => BigInt(`0x${signature.slice(66, 130)}`) <= HALF_ORDER;

/** The signature with v as 27 or 28, as the forwarder's contract needs it; some signers write 0 or 1. */
export const withUsualV = (signature: string): string =>
  signature.slice(0, 130) + (V_BY_PARITY[signature.slice(130)] ?? signature.slice(130));

/** That the address signed the digest by plain ECDSA. Throws KeywrightError `signature_…`. */
export function requireSignature(digest: string, given: unknown, address: Address): void {
  if (typeof given !== "string" || !SIGNATURE.test(given)) {
    throw new KeywrightError("signature_malformed", "signature must be 0x and 130 hex digits (65 bytes).");
  }
  const signature = withUsualV(given);
  const v = Number.parseInt(signature.slice(130), 16);
  if (v !== 27 && v !== 28)
    throw new KeywrightError("signature_malformed", "the signature's last byte (v) must be 27 or 28, or 0 or 1.");
  if (!isLowS(signature))
    throw new KeywrightError("signature_malformed", "the signature's s must be in the lower half of the order.");
  if (recover(digest, signature) !== address) {
    throw new KeywrightError("signature_mismatch", `the signature does not recover to ${address}.`);
  }
}

function recover(digest: string, signature: string): string | undefined {
  try {
    return recoverAddress(digest, Signature.from(signature));
  } catch {
    return undefined;
  }
}
