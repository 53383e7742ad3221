/** Groups: which actions may use which PKPs. Source: docs/conformance.md §2, §4. */
import { z } from "zod";
import { WIRE_LIMITS } from "../limits";
import {
  actionHash,
  cid,
  count,
  descriptionText,
  groupId,
  members,
  nameText,
  outAddress,
  outHash,
  outId,
  pageQuery,
  pkpReference,
  reading,
  reject,
  search,
  writeAnswer,
  writing,
  written,
} from "./fields";
import { defineRoute } from "./route";

const read = { ...reading, tag: "Groups", auth: "anyKey" } as const;
const write = { ...writing, tag: "Groups", auth: "anyKey" } as const;

const wallet = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const hashed = `0x${"a1".repeat(32)}`;
const exampleCid = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX";

const pkpIds = members(pkpReference).meta({
  description: "PKPs by address or number; the zero address means any PKP (owner only).",
});
const cidHashes = members(actionHash).meta({
  description: "Hashes of CIDs; the zero hash means any action (owner only).",
});

const addGroup = defineRoute({
  ...write,
  path: "/add_group",
  summary: "Make a group. A usage key may fill it at once only with the wildcard of the matching scope.",
  request: {
    body: z.strictObject({
      group_name: nameText,
      group_description: descriptionText,
      pkp_ids_permitted: pkpIds.default([]),
      cid_hashes_permitted: cidHashes.default([]),
    }),
  },
  response: writeAnswer.extend({ group_id: outId }),
  errors: ["unknown_pkp", "unknown_pkp_number", "string_too_long"],
  example: {
    body: {
      group_name: "treasury",
      group_description: "",
      pkp_ids_permitted: [wallet],
      cid_hashes_permitted: [hashed],
    },
    response: { ...written, group_id: "1" },
  },
});

const removeGroup = defineRoute({
  ...write,
  path: "/remove_group",
  summary: "Delete a group. What it permitted ends at once.",
  request: { body: z.strictObject({ group_id: groupId }) },
  errors: ["unknown_group"],
  example: { body: { group_id: "1" }, response: written },
});

const updateGroup = defineRoute({
  ...write,
  path: "/update_group",
  auth: "ownerKey",
  summary: "Set name and description; a given list replaces that list, an omitted one stays as it is. One transaction.",
  request: {
    body: z.strictObject({
      group_id: groupId,
      name: nameText,
      description: descriptionText,
      pkp_ids_permitted: pkpIds.optional(),
      cid_hashes_permitted: cidHashes.optional(),
    }),
  },
  errors: ["unknown_group", "unknown_pkp", "unknown_pkp_number", "string_too_long"],
  example: { body: { group_id: "1", name: "treasury", description: "", pkp_ids_permitted: [1] }, response: written },
});

const group = defineRoute({
  ...read,
  path: "/groups/:id",
  summary: "One group with its members (the first 1,000 of each kind).",
  request: { params: z.object({ id: groupId }) },
  response: z.strictObject({
    id: outId,
    name: z.string(),
    description: z.string(),
    pkp_ids_permitted: z.array(outAddress),
    cid_hashes_permitted: z.array(outHash),
    pkp_count: count,
    action_count: count,
  }),
  errors: ["unknown_group"],
  example: {
    params: { id: "1" },
    response: {
      id: "1",
      name: "treasury",
      description: "",
      pkp_ids_permitted: [wallet],
      cid_hashes_permitted: [hashed],
      pkp_count: 1,
      action_count: 1,
    },
  },
});

const groupsQuery = pageQuery
  .extend({
    search,
    pkp_id: pkpReference.optional().meta({
      description: "Only groups that list this PKP, by its address or number; zero: that list any PKP.",
    }),
    hashed_cid: actionHash.optional().meta({ description: "Only groups that list this action; zero: any action." }),
    members: z.enum(["true", "false"]).default("false").meta({ description: "`true` shows each group's members." }),
  })
  .check((ctx) => {
    if (ctx.value.members !== "true" || ctx.value.page_size <= WIRE_LIMITS.membersPageMax) return;
    reject(ctx, `page_size: must be 1 to ${WIRE_LIMITS.membersPageMax} with members`, {
      code: "page_too_large",
    });
  });

const listGroups = defineRoute({
  ...read,
  path: "/list_groups",
  summary:
    "The account's groups, or those that list a PKP or an action: by name, or because they list any. " +
    `At most ${WIRE_LIMITS.membersPageMax} a page with members.`,
  request: { query: groupsQuery },
  response: z.array(
    z.strictObject({
      id: outId,
      name: z.string(),
      description: z.string(),
      pkp_count: count,
      action_count: count,
      pkp_ids_permitted: z.array(outAddress).optional().meta({ description: "With `members`: the first 100." }),
      cid_hashes_permitted: z.array(outHash).optional().meta({ description: "With `members`: the first 100." }),
    }),
  ),
  errors: ["unknown_pkp_number"],
  example: { response: [{ id: "1", name: "treasury", description: "", pkp_count: 1, action_count: 1 }] },
  paged: true,
});

const addActionToGroup = defineRoute({
  ...write,
  path: "/add_action_to_group",
  summary: "List an action in a group, by its CID.",
  request: { body: z.strictObject({ group_id: groupId, action_ipfs_cid: cid }) },
  errors: ["unknown_group", "invalid_cid"],
  example: { body: { group_id: "1", action_ipfs_cid: exampleCid }, response: written },
});

const removeActionFromGroup = defineRoute({
  ...write,
  path: "/remove_action_from_group",
  summary: "Take an action out of a group, by its hashed CID.",
  request: { body: z.strictObject({ group_id: groupId, hashed_cid: actionHash }) },
  errors: ["unknown_group", "not_in_group"],
  example: { body: { group_id: "1", hashed_cid: hashed }, response: written },
});

const groupAndPkp = z.strictObject({ group_id: groupId, pkp_id: pkpReference });

const addPkpToGroup = defineRoute({
  ...write,
  path: "/add_pkp_to_group",
  summary: "List a PKP in a group.",
  request: { body: groupAndPkp },
  errors: ["unknown_group", "unknown_pkp", "unknown_pkp_number"],
  example: { body: { group_id: "1", pkp_id: wallet }, response: written },
});

const removePkpFromGroup = defineRoute({
  ...write,
  path: "/remove_pkp_from_group",
  summary: "Take a PKP out of a group.",
  request: { body: groupAndPkp },
  errors: ["unknown_group", "unknown_pkp", "unknown_pkp_number", "not_in_group"],
  example: { body: { group_id: "1", pkp_id: wallet }, response: written },
});

const change = <T extends z.ZodType>(item: T) =>
  z.strictObject({ add: members(item).default([]), remove: members(item).default([]) }).check((ctx) => {
    if (ctx.value.add.length + ctx.value.remove.length === 0)
      reject(ctx, "add or remove must name at least one member");
  });

const changeGroupActions = defineRoute({
  ...write,
  path: "/groups/:id/actions",
  summary: "Add and remove actions of a group, by CID, in one transaction.",
  request: { params: z.object({ id: groupId }), body: change(cid) },
  errors: ["unknown_group", "not_in_group", "member_in_both_lists", "invalid_cid"],
  example: { params: { id: "1" }, body: { add: [exampleCid], remove: [] }, response: written },
});

const changeGroupPkps = defineRoute({
  ...write,
  path: "/groups/:id/pkps",
  summary: "Add and remove PKPs of a group in one transaction.",
  request: { params: z.object({ id: groupId }), body: change(pkpReference) },
  errors: ["unknown_group", "unknown_pkp", "unknown_pkp_number", "not_in_group", "member_in_both_lists"],
  example: { params: { id: "1" }, body: { add: [wallet], remove: [] }, response: written },
});

export const groupRoutes = {
  addGroup,
  removeGroup,
  updateGroup,
  group,
  listGroups,
  addActionToGroup,
  removeActionFromGroup,
  addPkpToGroup,
  removePkpFromGroup,
  changeGroupActions,
  changeGroupPkps,
};
