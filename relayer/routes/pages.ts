/** Pagination, and items that several lists share. */
import type { Answer } from "../middleware/call";
import type { Page as PageQuery } from "../../protocol/http";
import { ZERO_ADDRESS, ZERO_HASH, type ActionHash, type Cid } from "../../protocol/ids";
import { opNames } from "../../protocol/ops";
import type { ActionView, PageRequest, PkpView } from "../chain/types";
import type { Page as StorePage } from "../credits/types";
import { defined } from "../../protocol/defined";

/** An offset above the safe integers is clamped: it is past the end of every list. */
export function pageOf({ page_number: number, page_size: size }: PageQuery): PageRequest {
  const offset = number * BigInt(size);
  return { offset: offset > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(offset), limit: size };
}

/** No stored list is this long; later pages are empty like any page past the end. */
const LAST_PAGE = 10n ** 12n;

/** The same for lists in the store. */
export const storePageOf = ({ page_number: number, page_size: size }: PageQuery): StorePage => ({
  number: Number(number < LAST_PAGE ? number : LAST_PAGE),
  size,
});

const ANY = "Any";

export function walletItem(pkp: PkpView): Answer<"listWallets">[number] {
  const { walletAddress, description, derivationPath, deniedOps } = pkp;
  const name = walletAddress === ZERO_ADDRESS ? ANY : pkp.name;
  return {
    id: String(pkp.number),
    wallet_address: walletAddress,
    pkp_id: walletAddress,
    name,
    description,
    derivation_path: derivationPath,
    denied_ops: opNames(deniedOps),
  };
}

export function actionItem(action: ActionView, cids: ReadonlyMap<ActionHash, Cid>): Answer<"listActions">[number] {
  const { hash, description } = action;
  const cid = cids.get(hash);
  const name = hash === ZERO_HASH ? ANY : action.name;
  return { id: hash, hashed_cid: hash, name, description, ...defined({ action_ipfs_cid: cid }) };
}
