/**
 * Gasless writes of owners: signed calls are sent through the contract's ERC-2771 forwarder and paid from the account's
 * credit.
 */
import { z } from "zod";
import { address, outAddress, outHash, outId, outNumeral, reading, success, writing } from "./fields";
import { defineRoute } from "./route";

const wallet = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const contract = "0x5FbDB2315678afecb367f032d93F642f64180aa3";

const decimal = (description: string) =>
  z
    .string()
    .regex(/^(0|[1-9][0-9]{0,77})$/, "must be a decimal number in a string")
    .meta({ description });
const hex = (description: string) =>
  z
    .string()
    .regex(/^0x([0-9a-fA-F]{2})*$/, "must be 0x and whole bytes in hex")
    .meta({ description });

const relay = defineRoute({
  ...writing,
  path: "/relay",
  tag: "ChainSecured",
  summary:
    "Send a call of the account contract that an account's owner signed as a forward request (EIP-712, domain " +
    "`<svc> Forwarder`, version 1). The service pays the gas, the account's credit the price of a write. Making an " +
    "account is free, within the limits of free mints.",
  auth: "none",
  request: {
    body: z.strictObject({
      from: address.meta({ description: "The owner who signed." }),
      to: address.meta({ description: "The account contract." }),
      value: decimal("Always 0."),
      gas: decimal("What the call may use at most."),
      nonce: decimal("The signer's next nonce at the forwarder: `GET /relay_nonce`."),
      deadline: decimal("Unix seconds, at most a day ahead."),
      data: hex("Calldata of one of the contract's owner functions, or of `multicall` of several of one account."),
      signature: hex("65 bytes: r, s (low), v (27 or 28, or 0 or 1)."),
    }),
  },
  response: z.strictObject({
    success,
    transaction_hash: outHash,
    group_id: outId.optional(),
    wallet_address: outAddress.optional(),
    derivation_path: outHash.optional(),
    api_key_hash: outHash.optional(),
  }),
  errors: [
    "request_expired",
    "signature_malformed",
    "signature_mismatch",
    "forward_gas_too_low",
    "forward_nonce_used",
    "owner_needs_token",
    "chain_unavailable",
    // Of the contract: what it refuses calls of owners with.
    "account_id_taken",
    "unknown_account",
    "account_chain_secured",
    "zero_address",
    "same_owner",
    "owner_is_this_contract",
    "forwarder_not_allowed",
    "zero_id",
    "unknown_usage_key",
    "key_id_taken",
    "key_revoked",
    "unknown_pkp",
    "pkp_taken",
    "unknown_path_kind",
    "foreign_derivation_path",
    "unknown_group",
    "group_zero",
    "unknown_action",
    "action_zero",
    "not_in_group",
    "member_in_both_lists",
    "string_too_long",
    "value_too_large",
  ],
  example: {
    body: {
      from: wallet,
      to: contract,
      value: "0",
      gas: "200000",
      nonce: "0",
      deadline: "1790000600",
      data: "0x8f3a3bc9",
      signature: `0x${"5e".repeat(64)}1b`,
    },
    response: { success: true, transaction_hash: `0x${"7a".repeat(32)}`, group_id: "1" },
  },
  heavy: true,
});

const relayNonce = defineRoute({
  ...reading,
  path: "/relay_nonce",
  tag: "ChainSecured",
  summary: "The next nonce of a signer at the forwarder.",
  auth: "none",
  request: { query: z.object({ address }) },
  response: z.strictObject({ address: outAddress, nonce: outNumeral, forwarder_address: outAddress }),
  errors: ["chain_unavailable"],
  example: { query: { address: wallet }, response: { address: wallet, nonce: "0", forwarder_address: contract } },
});

export const relayRoutes = { relay, relayNonce };
