/** Accounts: create, read, update, freeze, transfer, convert. Source: docs/conformance.md §4. */
import { z } from "zod";
import {
  address,
  count,
  descriptionText,
  nameText,
  outAddress,
  outHash,
  reading,
  success,
  writeAnswer,
  writing,
  written,
} from "./fields";
import { defineRoute } from "./route";
import { envelope, exampleEnvelope } from "./signatures";

const read = { ...reading, tag: "Account" } as const;
const write = { ...writing, tag: "Account" } as const;

const EMAIL_MAX_CHARS = 254;
const hash = `0x${"6f".repeat(32)}`;
const transaction = `0x${"7a".repeat(32)}`;
const wallet = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

export const secretReturnedBefore = z.literal(true).optional().meta({
  description: "Present on a replay by Idempotency-Key: the secret was in the first answer and is stored nowhere.",
});

const newAccount = defineRoute({
  ...write,
  path: "/new_account",
  summary:
    "Create an API-mode account. The key in the answer is shown once. With X-Identity-Token the account belongs to " +
    "the token's wallet and no key is created.",
  auth: "identityOptional",
  request: {
    body: z.strictObject({
      account_name: nameText,
      account_description: descriptionText,
      email: z
        .email("must be an e-mail address")
        .max(EMAIL_MAX_CHARS, `must be at most ${EMAIL_MAX_CHARS} characters`)
        .nullish(),
    }),
  },
  response: writeAnswer.extend({
    api_key: z.string().optional().meta({ description: "The account key: base64 of 32 random bytes. Shown once." }),
    wallet_address: outAddress,
    api_key_hash: outHash,
    secret_returned_before: secretReturnedBefore,
  }),
  errors: ["account_id_taken", "key_id_taken", "string_too_long"],
  example: {
    body: { account_name: "Acme", account_description: "Treasury" },
    response: {
      success: true,
      api_key: "pVgTUg9W8pbnPb2dVgqRtRiuZ4aE7Hk3f1v1cXn5y0k=",
      wallet_address: wallet,
      api_key_hash: hash,
      transaction_hash: transaction,
    },
  },
  price: "free",
  secrets: ["api_key"],
  secretAgain: true,
  mints: true,
});

const accountExists = defineRoute({
  ...read,
  path: "/account_exists",
  summary: "Whether the key is a live key of an account, in either mode.",
  auth: "wellFormedKey",
  response: z.boolean(),
  example: { response: true },
});

const account = defineRoute({
  ...read,
  path: "/account",
  summary: "The account of the credential.",
  auth: "keyOrWallet",
  response: z.strictObject({
    id: outHash,
    name: z.string(),
    description: z.string(),
    managed: z.boolean().meta({ description: "true in API mode, false in ChainSecured mode." }),
    owner: outAddress,
    frozen: z
      .boolean()
      .meta({ description: "true: no run is allowed and no usage key writes, until the owner ends that." }),
    group_count: count,
    wallet_count: count,
    action_count: count,
    usage_api_key_count: count,
  }),
  example: {
    response: {
      id: hash,
      name: "Acme",
      description: "Treasury",
      managed: true,
      owner: wallet,
      frozen: false,
      group_count: 1,
      wallet_count: 1,
      action_count: 1,
      usage_api_key_count: 2,
    },
  },
});

const updateAccount = defineRoute({
  ...write,
  path: "/update_account",
  summary: "Set the account's name and description.",
  request: { body: z.strictObject({ name: nameText, description: descriptionText }) },
  errors: ["string_too_long"],
  example: { body: { name: "Acme", description: "Treasury" }, response: written },
});

const freezing = {
  ...write,
  request: { body: z.strictObject({}) },
  example: { body: {}, response: written },
  price: "writeIfFunded",
} as const;

const freezeAccount = defineRoute({
  ...freezing,
  path: "/freeze_account",
  summary:
    "Stop everything but the owner at once: no run of any key is allowed and no usage key writes " +
    "(`account_frozen`). Carried out at zero balance, too.",
});

const unfreezeAccount = defineRoute({
  ...freezing,
  path: "/unfreeze_account",
  summary: "End the freezing of the account. Carried out at zero balance, too.",
});

const transferOwnership = defineRoute({
  ...write,
  path: "/transfer_ownership",
  summary:
    "Hand the account to another owner (a wallet, a multisig, a contract). A managed account becomes ChainSecured; " +
    "usage keys stay. Carried out at zero balance, too.",
  request: {
    body: z
      .strictObject({
        new_owner_address: address.optional(),
        new_owner_identity_token: z.string().max(8_192).optional().meta({
          description: "An OIDC ID token of the new owner: the account is transferred to the wallet of that identity.",
        }),
      })
      .check((ctx) => {
        const { new_owner_address: wallet, new_owner_identity_token: token } = ctx.value;
        if (wallet !== undefined || token !== undefined) return;
        const message = "is missing, and so is new_owner_identity_token";
        ctx.issues.push({
          code: "custom",
          path: ["new_owner_address"],
          message,
          input: wallet,
          params: { shape: true },
        });
      }),
  },
  errors: [
    "owner_needs_token",
    "invalid_identity_token",
    "identity_provider_unavailable",
    "zero_address",
    "same_owner",
    "owner_is_this_contract",
    "forwarder_not_allowed",
  ],
  example: { body: { new_owner_address: wallet }, response: written },
  price: "writeIfFunded",
});

const convertToChainSecuredAccount = defineRoute({
  ...write,
  path: "/convert_to_chain_secured_account",
  tag: "ChainSecured",
  summary:
    "Make the account ChainSecured: its owner becomes the wallet that signed. One way. Everything the account owns " +
    "stays. Carried out at zero balance, too.",
  auth: "accountKey",
  body: "signature",
  request: { body: envelope.extend({ new_admin_wallet_address: address }) },
  response: z.strictObject({ success, wallet_address: outAddress, api_key_hash: outHash, transaction_hash: outHash }),
  errors: ["signature_mismatch", "zero_address", "owner_is_this_contract", "forwarder_not_allowed"],
  example: {
    body: { new_admin_wallet_address: wallet, ...exampleEnvelope("ConvertAccount") },
    response: { success: true, wallet_address: wallet, api_key_hash: hash, transaction_hash: transaction },
  },
  price: "writeIfFunded",
});

export const accountRoutes = {
  newAccount,
  accountExists,
  account,
  updateAccount,
  freezeAccount,
  unfreezeAccount,
  transferOwnership,
  convertToChainSecuredAccount,
};
