/** Usage keys: their permissions and expiry. Source: docs/conformance.md §2, §4. */
import { z } from "zod";
import { MAX_U64 } from "../ids";
import { KEY_LIMITS, WIRE_LIMITS } from "../limits";
import {
  boundedNumber,
  cents,
  count,
  descriptionText,
  keyReference,
  members,
  nameText,
  outAddress,
  outHash,
  outId,
  outNumeral,
  pageQuery,
  reading,
  scopeGroupId,
  search,
  success,
  wholeNumber,
  writeAnswer,
  writing,
  written,
} from "./fields";
import { secretReturnedBefore } from "./accounts";
import { defineRoute } from "./route";

const read = { ...reading, tag: "Usage keys" } as const;
const write = { ...writing, tag: "Usage keys" } as const;

const keyHash = `0x${"b2".repeat(32)}`;
const wallet = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

const scopeList = (what: string) =>
  members(scopeGroupId, WIRE_LIMITS.scopeListItems).meta({
    description: `Groups where the key may ${what}; [0] means all.`,
  });

/** The nine permission fields, and the two further arguments of the contract's `setUsageApiKey`. */
const permissions = z.strictObject({
  name: nameText,
  description: descriptionText,
  can_create_groups: z.boolean(),
  can_delete_groups: z.boolean(),
  can_create_pkps: z.boolean(),
  manage_ipfs_ids_in_groups: scopeList("add or remove actions"),
  add_pkp_to_groups: scopeList("add PKPs (where it also runs actions, it can so use every PKP of the account)"),
  remove_pkp_from_groups: scopeList("remove PKPs"),
  execute_in_groups: scopeList("run actions"),
  expiration: wholeNumber(MAX_U64, "Unix seconds from which the key is dead; 0 = never.", ["0"]).optional(),
  balance: wholeNumber(MAX_U64, "What the key may spend over its life, in US cents; 0 = no cap.", ["0"]).optional(),
});

const named = z.strictObject({ usage_api_key: keyReference });

const examplePermissions = {
  name: "bot",
  description: "Runs the treasury action",
  can_create_groups: false,
  can_delete_groups: false,
  can_create_pkps: false,
  manage_ipfs_ids_in_groups: [],
  add_pkp_to_groups: [],
  remove_pkp_from_groups: [],
  execute_in_groups: ["1"],
};

const addUsageApiKey = defineRoute({
  ...write,
  path: "/add_usage_api_key",
  summary: "Make a usage key with these permissions. The key in the answer is shown once.",
  request: { body: permissions },
  response: writeAnswer.extend({
    usage_api_key: z.string().optional().meta({ description: "Base64 of 32 random bytes. Shown once." }),
    wallet_address: outAddress,
    api_key_hash: outHash,
    secret_returned_before: secretReturnedBefore,
  }),
  errors: ["unknown_group", "key_id_taken", "value_too_large", "string_too_long"],
  example: {
    body: examplePermissions,
    response: {
      success: true,
      usage_api_key: "pVgTUg9W8pbnPb2dVgqRtRiuZ4aE7Hk3f1v1cXn5y0k=",
      wallet_address: wallet,
      api_key_hash: keyHash,
      transaction_hash: `0x${"7a".repeat(32)}`,
    },
  },
  secrets: ["usage_api_key"],
  secretAgain: true,
});

const updateUsageApiKey = defineRoute({
  ...write,
  path: "/update_usage_api_key",
  summary: "Replace the key's permissions. Omitted `expiration` and `balance` stay as they are. Never creates a key.",
  request: { body: permissions.extend(named.shape) },
  errors: ["unknown_usage_key", "unknown_group", "value_too_large", "string_too_long"],
  example: { body: { usage_api_key: keyHash, ...examplePermissions }, response: written },
});

const updateUsageApiKeyMetadata = defineRoute({
  ...write,
  path: "/update_usage_api_key_metadata",
  summary: "Change the key's name and description.",
  request: { body: named.extend({ name: nameText, description: descriptionText }) },
  errors: ["unknown_usage_key", "string_too_long"],
  example: { body: { usage_api_key: keyHash, name: "bot", description: "" }, response: written },
});

const removeUsageApiKey = defineRoute({
  ...write,
  path: "/remove_usage_api_key",
  summary: "Revoke the key permanently, named by itself or by its hash. Also works at zero balance.",
  request: { body: named },
  errors: ["unknown_usage_key"],
  example: { body: { usage_api_key: keyHash }, response: written },
  price: "writeIfFunded",
});

const revokeAllUsageApiKeys = defineRoute({
  ...write,
  path: "/revoke_all_usage_api_keys",
  summary:
    "Revoke every usage key of the account at once and permanently, in one write regardless of their number. Also " +
    "works at zero balance.",
  request: { body: z.strictObject({}) },
  example: { body: {}, response: written },
  price: "writeIfFunded",
});

const ids = z.array(outId);

export const usageKeyItem = z.strictObject({
  id: outHash,
  api_key_hash: outHash,
  name: z.string(),
  description: z.string(),
  expiration: outNumeral.meta({ description: "Unix seconds; 0 = never." }),
  balance: outNumeral.meta({ description: "Spending cap in US cents; 0 = none." }),
  spent_cents: cents,
  last_used_at: count.optional().meta({ description: "Unix seconds: its newest run of those on record." }),
  can_create_groups: z.boolean(),
  can_delete_groups: z.boolean(),
  can_create_pkps: z.boolean(),
  manage_ipfs_ids_in_groups: ids,
  add_pkp_to_groups: ids,
  remove_pkp_from_groups: ids,
  execute_in_groups: ids,
  can_manage_ipfs_ids_in_groups: ids,
  can_add_pkp_to_groups: ids,
  can_remove_pkp_from_groups: ids,
  can_execute_in_groups: ids,
});

const listApiKeys = defineRoute({
  ...read,
  path: "/list_api_keys",
  summary:
    "The account's usage keys: permissions and metadata, never a key. The four lists appear twice; the `can_` forms " +
    "are for older clients.",
  auth: "anyKey",
  request: { query: pageQuery.extend({ search }) },
  response: z.array(usageKeyItem),
  example: {
    response: [
      {
        id: keyHash,
        api_key_hash: keyHash,
        expiration: "0",
        balance: "0",
        spent_cents: 3,
        last_used_at: 1_700_000_000,
        ...examplePermissions,
        can_manage_ipfs_ids_in_groups: [],
        can_add_pkp_to_groups: [],
        can_remove_pkp_from_groups: [],
        can_execute_in_groups: ["1"],
      },
    ],
  },
  paged: true,
});

const centsPerDay = "US cents that the key may spend in any 24 hours; 0 = no limit.";
const runsPerMinute = "Runs that the key may begin in any minute; 0 = no limit.";
const isOrigin = (text: string): boolean => !text.includes("*") && URL.canParse(text) && new URL(text).origin === text;

const limitFields = {
  cents_per_day: boundedNumber(0, KEY_LIMITS.centsPerDay, centsPerDay),
  runs_per_minute: boundedNumber(0, KEY_LIMITS.runsPerMinute, runsPerMinute),
  origins: members(
    z.string().refine(isOrigin, "must be an origin as browsers send it, such as https://app.example"),
    KEY_LIMITS.origins,
  ).meta({
    description: "Web pages that may run actions with the key, as far as browsers tell; [] = all. A hint only.",
  }),
};
const exampleLimits = { cents_per_day: 100, runs_per_minute: 10, origins: ["https://app.example"] };

const setUsageKeyLimits = defineRoute({
  ...write,
  path: "/usage_key_limits",
  summary: "Replace the key's limits by day, minute and origin. The service enforces them, not the contract.",
  auth: "ownerOrWallet",
  request: {
    body: named.extend({
      cents_per_day: limitFields.cents_per_day.default(0),
      runs_per_minute: limitFields.runs_per_minute.default(0),
      origins: limitFields.origins.default([]),
    }),
  },
  response: z.strictObject({ success }),
  errors: ["unknown_usage_key"],
  example: { body: { usage_api_key: keyHash, ...exampleLimits }, response: { success: true } },
  price: "free",
});

const listUsageKeyLimits = defineRoute({
  ...read,
  path: "/usage_key_limits",
  summary: "The account's usage keys that have limits by day, minute or origin, and what counts against them now.",
  auth: "keyOrWallet",
  request: { query: pageQuery },
  response: z.array(
    z.strictObject({
      api_key_hash: outHash,
      cents_per_day: count.meta({ description: centsPerDay }),
      runs_per_minute: count.meta({ description: runsPerMinute }),
      origins: z.array(z.string()),
      cents_used: count.meta({ description: "US cents held and spent in the last 24 to 25 hours." }),
      runs_used: count.meta({ description: "Runs begun in the last 60 to 65 seconds." }),
    }),
  ),
  example: { response: [{ api_key_hash: keyHash, ...exampleLimits, cents_used: 12, runs_used: 1 }] },
  paged: true,
});

export const usageKeyRoutes = {
  addUsageApiKey,
  updateUsageApiKey,
  updateUsageApiKeyMetadata,
  removeUsageApiKey,
  revokeAllUsageApiKeys,
  listApiKeys,
  setUsageKeyLimits,
  listUsageKeyLimits,
};
