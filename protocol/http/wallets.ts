/** PKPs, the account's wallets. Source: docs/conformance.md §2, §4. */
import { z } from "zod";
import { PKP_OP_NAMES } from "../ops";
import { publicKeysSchema } from "../publicKeys";
import {
  descriptionText,
  groupId,
  nameText,
  outAddress,
  outHash,
  outId,
  pageQuery,
  pkpReference,
  reading,
  search,
  writeAnswer,
  writing,
  written,
} from "./fields";
import { defineRoute } from "./route";

const read = { ...reading, tag: "Wallets", auth: "anyKey" } as const;
const write = { ...writing, tag: "Wallets" } as const;

const wallet = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

const createWallet = defineRoute({
  ...write,
  path: "/create_wallet",
  aliases: [
    { method: "POST", path: "/pkps/create" },
    { method: "GET", path: "/create_wallet", deprecated: true },
  ],
  summary: "Make a PKP and register it to the account.",
  auth: "anyKey",
  request: { body: z.strictObject({ name: nameText.default(""), description: descriptionText.default("") }) },
  response: writeAnswer.extend({ wallet_address: outAddress, pkp_id: outAddress, derivation_path: outHash }),
  errors: ["pkp_taken", "string_too_long"],
  example: {
    body: { name: "hot wallet", description: "" },
    response: {
      success: true,
      wallet_address: wallet,
      pkp_id: wallet,
      derivation_path: `0x01${"c4".repeat(15)}${"6f".repeat(16)}`,
      transaction_hash: `0x${"7a".repeat(32)}`,
    },
  },
});

const updateWallet = defineRoute({
  ...write,
  path: "/update_wallet",
  summary: "Set a PKP's name and description.",
  request: { body: z.strictObject({ pkp_id: pkpReference, name: nameText, description: descriptionText }) },
  errors: ["unknown_pkp", "unknown_pkp_number", "string_too_long"],
  example: { body: { pkp_id: wallet, name: "hot wallet", description: "" }, response: written },
});

const setWalletOps = defineRoute({
  ...write,
  path: "/set_wallet_ops",
  summary:
    "Say which ops no action may ask for with this PKP, whatever its groups list: the executor enforces it below " +
    "the action's code. Replaces what was denied.",
  request: {
    body: z.strictObject({
      pkp_id: pkpReference,
      denied_ops: z
        .array(z.enum(PKP_OP_NAMES))
        .max(64)
        .meta({ description: "The ops by the names actions call them; empty = none is denied." }),
    }),
  },
  errors: ["unknown_pkp", "unknown_pkp_number"],
  example: { body: { pkp_id: wallet, denied_ops: ["signDigest", "getPrivateKey"] }, response: written },
});

const walletItem = z.strictObject({
  id: outId.meta({ description: "The PKP's number in the account, from 1; 0 for the wildcard." }),
  wallet_address: outAddress,
  pkp_id: outAddress,
  name: z.string(),
  description: z.string(),
  derivation_path: outHash,
  denied_ops: z.array(z.string()).meta({
    description: "What no action may ask for with this PKP; a bit that no op has yet shows as its hex value.",
  }),
});
const exampleItem = {
  id: "1",
  wallet_address: wallet,
  pkp_id: wallet,
  name: "hot wallet",
  description: "",
  derivation_path: `0x01${"c4".repeat(15)}${"6f".repeat(16)}`,
  denied_ops: ["getPrivateKey"],
};

const listWallets = defineRoute({
  ...read,
  path: "/list_wallets",
  summary: "The account's PKPs. Wallets of usage keys are no PKPs and are not listed.",
  request: { query: pageQuery.extend({ search }) },
  response: z.array(walletItem),
  example: { response: [exampleItem] },
  paged: true,
});

const listWalletsInGroup = defineRoute({
  ...read,
  path: "/list_wallets_in_group",
  summary: "The PKPs a group lists. The wildcard shows number 0, the zero address and the name Any.",
  request: { query: pageQuery.extend({ group_id: groupId }) },
  response: z.array(walletItem),
  errors: ["unknown_group"],
  example: { query: { group_id: "1" }, response: [exampleItem] },
  paged: true,
});

const publicKeys = defineRoute({
  ...read,
  path: "/public_keys",
  summary:
    "A PKP's public keys on every curve, with JWKs and addresses, stated and signed by the executor. Nothing runs.",
  request: { query: z.object({ pkp_id: pkpReference }) },
  response: publicKeysSchema,
  errors: ["unknown_pkp", "unknown_pkp_number", "executor_unavailable"],
  example: {
    query: { pkp_id: "1" },
    response: {
      key_namespace: `0x${"5a".repeat(32)}`,
      pkp_id: wallet,
      derivation_path: `0x01${"c4".repeat(15)}${"6f".repeat(16)}`,
      keys: [
        {
          curve: "ed25519",
          public_key: `0x${"00".repeat(32)}`,
          jwk: { kty: "OKP", crv: "Ed25519", x: "A".repeat(43) },
          addresses: { solana: "1".repeat(32) },
        },
      ],
      attestation: { public_key: `0x${"ed".repeat(32)}`, signature: `0x${"5e".repeat(64)}` },
    },
  },
});

export const walletRoutes = { createWallet, updateWallet, setWalletOps, listWallets, listWalletsInGroup, publicKeys };
