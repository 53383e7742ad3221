/**
 * The typed data of the signature routes and its construction. Separate from validation (typedData.ts) so that the SDK
 * needs no schema library in a browser.
 * Source: docs/conformance.md §2.
 */
import type { Address } from "./ids";

export const PRIMARY_TYPES = ["CreateWallet", "ConvertAccount", "AddUsageApiKey", "BillingAuth"] as const;
export type PrimaryType = (typeof PRIMARY_TYPES)[number];

/** This deployment's signing domain: its name contains the service's name, version 1, the node's chain id. */
export interface TypedDataDomain {
  readonly name: string;
  readonly version: "1";
  readonly chainId: bigint;
}

export const TYPED_DATA_VERSION = "1";
export const domainName = (serviceName: string): string => `${serviceName} ChainSecured`;

export const DOMAIN_FIELDS = [
  { name: "name", type: "string" },
  { name: "version", type: "string" },
  { name: "chainId", type: "uint256" },
] as const;
export const MESSAGE_FIELDS = [
  { name: "address", type: "address" },
  { name: "issuedAt", type: "uint256" },
] as const;

export interface TypedData {
  readonly types: Readonly<Record<string, readonly { name: string; type: string }[]>>;
  readonly primaryType: string;
  readonly domain: { readonly name: string; readonly version: string; readonly chainId: string | number };
  readonly message: { readonly address: string; readonly issuedAt: string | number };
}

/** The canonical envelope for a wallet to sign. `issuedAtSeconds` is unix time. */
export function buildTypedData(
  primaryType: PrimaryType,
  domain: TypedDataDomain,
  address: Address,
  issuedAtSeconds: number,
): TypedData {
  return {
    types: { EIP712Domain: [...DOMAIN_FIELDS], [primaryType]: [...MESSAGE_FIELDS] },
    primaryType,
    domain: { name: domain.name, version: domain.version, chainId: domain.chainId.toString() },
    message: { address, issuedAt: issuedAtSeconds.toString() },
  };
}
