/** The signature routes of ChainSecured owners. Source: docs/conformance.md §2, §4, §5. */
import { z } from "zod";
import { buildTypedData, domainName, type PrimaryType } from "../typedData";
import type { Address } from "../ids";
import { accountId, outAddress, outHash } from "./fields";
import { defineRoute } from "./route";

/** Required, but of any type: its content is validated later, with its own error codes. */
const present = (description: string, meta: Record<string, unknown>) =>
  z
    .unknown()
    .refine((value) => value !== undefined, { message: "is missing", params: { shape: true } })
    .meta({ description, ...meta });

export const typedDataField = present("The EIP-712 envelope, at most 4,096 bytes of JSON.", {
  type: "object",
  additionalProperties: true,
});
export const signatureField = present("0x and 130 hex digits.", { type: "string", pattern: "^0x[0-9a-fA-F]{130}$" });
export const envelope = z.strictObject({ typed_data: typedDataField, signature: signatureField });

const wallet = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const path = `0x01${"c4".repeat(15)}${"6f".repeat(16)}`;

/** An example envelope for the OpenAPI document; its signature only has the right form. */
export function exampleEnvelope(primaryType: PrimaryType): { typed_data: unknown; signature: string } {
  const domain = { name: domainName("Keywright"), version: "1" as const, chainId: 31337n };
  return {
    typed_data: buildTypedData(primaryType, domain, wallet as Address, 1_790_000_000),
    signature: `0x${"5e".repeat(64)}1b`,
  };
}

const mintBody = envelope.extend({
  api_key_hash: accountId.optional().meta({
    type: "string",
    pattern: "^0x[0-9a-fA-F]{64}$",
    description:
      "The account it is for. Default: the account of the signing wallet's own id, else the " +
      "only account the wallet owns.",
  }),
});

const minting = {
  method: "POST",
  tag: "ChainSecured",
  auth: "none",
  body: "signature",
  request: { body: mintBody },
  errors: [],
  price: "free",
  effect: true,
  mints: true,
} as const;

const createWalletWithSignature = defineRoute({
  ...minting,
  path: "/create_wallet_with_signature",
  summary:
    "Mint a PKP for a ChainSecured account. It belongs to no account until the owner sends registerWalletDerivation " +
    "with this path.",
  response: z.strictObject({ wallet_address: outAddress, derivation_path: outHash }),
  example: { body: exampleEnvelope("CreateWallet"), response: { wallet_address: wallet, derivation_path: path } },
});

const addUsageApiKeyWithSignature = defineRoute({
  ...minting,
  path: "/add_usage_api_key_with_signature",
  summary:
    "Mint a usage key for a ChainSecured account. It has no effect until the owner sends registerWalletDerivation " +
    "and setUsageApiKey (one multicall, in this order).",
  response: z.strictObject({
    usage_api_key: z.string().optional().meta({ description: "Base64 of 32 secret bytes. Shown once." }),
    wallet_address: outAddress,
    derivation_path: outHash,
    api_key_hash: outHash,
    secret_returned_before: z.literal(true).optional(),
  }),
  example: {
    body: exampleEnvelope("AddUsageApiKey"),
    response: {
      usage_api_key: "pVgTUg9W8pbnPb2dVgqRtRiuZ4aE7Hk3f1v1cXn5y0k=",
      wallet_address: wallet,
      derivation_path: `0x02${path.slice(4)}`,
      api_key_hash: `0x${"b2".repeat(32)}`,
    },
  },
  secrets: ["usage_api_key"],
});

export const signatureRoutes = { createWalletWithSignature, addUsageApiKeyWithSignature };
