/** Action routes: metadata in an account, and the CID of code. */
import { actionHashOf } from "../../protocol/ids";
import type { actionRoutes as routes } from "../../protocol/http/actions";
import type { HandlersOf } from "../middleware/call";
import type { RouteDeps } from "./deps";
import type { ActionView, Page, PageRequest } from "../chain/types";
import { foundPage, matcher } from "./found";
import { actionItem, pageOf } from "./pages";
import { done, write, type Writes } from "./writes";

export function actionRoutes({ chain, cids, cidOf }: RouteDeps, writes: Writes): HandlersOf<keyof typeof routes> {
  return {
    addAction: async (call) => {
      const { action_ipfs_cid: cid, name, description } = call.body;
      const written = await writes.send(
        call,
        write("addAction", call.caller.accountId, name, description, actionHashOf(cid)),
      );
      await cids.remember([cid]);
      return done(written);
    },

    deleteAction: async (call) =>
      done(await writes.send(call, write("removeAction", call.caller.accountId, call.body.hashed_cid))),

    updateActionMetadata: async (call) => {
      const { hashed_cid: hash, name, description } = call.body;
      return done(
        await writes.send(call, write("updateActionMetadata", call.caller.accountId, hash, "0", name, description)),
      );
    },

    listActions: async ({ caller, query, setTotal }) => {
      const { group_id: groupId, search } = query;
      const read = (page: PageRequest): Promise<Page<ActionView>> =>
        groupId === undefined
          ? chain.actions(caller.accountId, page)
          : chain.actionsInGroup(caller.accountId, groupId, page);
      const isFound = matcher(search, ({ name, description, hash }: ActionView) => [name, description, hash]);
      const { items, total } = await foundPage(read, pageOf(query), isFound);
      setTotal(total);
      const known = await cids.lookUp(items.map(({ hash }) => hash));
      return items.map((action) => actionItem(action, known));
    },

    getActionIpfsId: async ({ body }) => cidOf(body),
  };
}
