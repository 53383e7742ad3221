/** Actions: their CIDs and their metadata in an account. Source: docs/conformance.md §2, §4. */
import { z } from "zod";
import { RUN_LIMITS } from "../limits";
import {
  actionHash,
  cid,
  descriptionText,
  groupId,
  nameText,
  outCid,
  outHash,
  pageQuery,
  reading,
  reject,
  search,
  writing,
  written,
} from "./fields";
import { defineRoute } from "./route";

const write = { ...writing, tag: "Actions" } as const;

const hashed = `0x${"a1".repeat(32)}`;
const exampleCid = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX";

/** To count the bytes of a long text takes tens of milliseconds: only where they matter. */
const isLongerInUtf8 = (text: string, bytes: number): boolean =>
  text.length > bytes || (text.length > bytes / 3 && Buffer.byteLength(text, "utf8") > bytes);

/** An action's source code, limited like the code of a run. */
export const codeText = z
  .string()
  .check((ctx) => {
    if (!ctx.value.isWellFormed()) reject(ctx, "holds half a surrogate pair, which has no UTF-8 form");
    else if (isLongerInUtf8(ctx.value, RUN_LIMITS.codeBytes)) {
      reject(ctx, `must be at most ${RUN_LIMITS.codeBytes} bytes of UTF-8`, {
        code: "code_too_large",
      });
    }
  })
  .meta({ type: "string", maxLength: RUN_LIMITS.codeBytes, description: "JavaScript source." });

const addAction = defineRoute({
  ...write,
  path: "/add_action",
  summary: "Give an action a name and a description in the account, by its raw CID.",
  request: { body: z.strictObject({ action_ipfs_cid: cid, name: nameText, description: descriptionText }) },
  errors: ["invalid_cid", "string_too_long"],
  example: { body: { action_ipfs_cid: exampleCid, name: "sign", description: "" }, response: written },
});

const deleteAction = defineRoute({
  ...write,
  path: "/delete_action",
  summary: "Delete an action from the account and from every group, by its hashed CID.",
  request: { body: z.strictObject({ hashed_cid: actionHash }) },
  errors: ["unknown_action"],
  example: { body: { hashed_cid: hashed }, response: written },
});

const updateActionMetadata = defineRoute({
  ...write,
  path: "/update_action_metadata",
  summary: "Change an action's name and description, by its hashed CID.",
  request: { body: z.strictObject({ hashed_cid: actionHash, name: nameText, description: descriptionText }) },
  errors: ["unknown_action", "string_too_long"],
  example: { body: { hashed_cid: hashed, name: "sign", description: "" }, response: written },
});

const listActions = defineRoute({
  ...reading,
  path: "/list_actions",
  tag: "Actions",
  summary: "The account's actions, or those a group lists. The wildcard shows the zero hash and the name Any.",
  auth: "anyKey",
  request: { query: pageQuery.extend({ group_id: groupId.optional(), search }) },
  response: z.array(
    z.strictObject({
      id: outHash,
      hashed_cid: outHash,
      name: z.string(),
      description: z.string(),
      action_ipfs_cid: outCid.optional(),
    }),
  ),
  errors: ["unknown_group"],
  example: {
    query: { group_id: "1" },
    response: [{ id: hashed, hashed_cid: hashed, name: "sign", description: "", action_ipfs_cid: exampleCid }],
  },
  paged: true,
});

const getActionIpfsId = defineRoute({
  ...write,
  path: "/get_lit_action_ipfs_id",
  aliases: [{ method: "POST", path: "/get_{svc}_action_ipfs_id" }],
  summary: "The CID of this code, as a plain `ipfs add` gives it. The body is a JSON string.",
  auth: "none",
  heavy: true,
  body: "code",
  request: { body: codeText },
  response: outCid,
  errors: ["code_too_large", "queue_full"],
  example: { body: "hello", response: exampleCid },
  price: "free",
  effect: false,
});

export const actionRoutes = { addAction, deleteAction, updateActionMetadata, listActions, getActionIpfsId };
