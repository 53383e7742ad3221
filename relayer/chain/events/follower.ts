/**
 * Follows the contract's events block by block. The newest blocks' hashes are kept; when one is no longer on the chain, the events above the last
 * common block are taken back by entries of their own; submissions whose block is not on the chain are made open again and carried to an outcome once more.
 */
import { sql } from "kysely";
import type { Logger } from "pino";
import type { Address } from "../../../protocol/ids";
import type { Db, Trx } from "../../store/database";
import { eventRow, type ChainLog } from "./eventRows";
import type { RpcClient } from "../rpc/client";

export interface FollowerOptions {
  readonly db: Db;
  readonly rpc: RpcClient;
  readonly contractAddress: Address;
  readonly deploymentBlock: number;
  /** Blocks this deep are taken as final. */
  readonly finalityDepth: number;
  readonly log: Logger;
  /** Told when a reorg has been written down. */
  readonly onReorg: () => void;
}

interface Block {
  readonly number: number;
  readonly hash: string;
}

const MOST_BLOCKS_AT_ONCE = 2_000;

/** Another instance moved the follower on in the meantime. */
class Overtaken extends Error {
  override readonly name = "Overtaken";
}

export class Follower {
  /** Halved when a node refuses a range of logs, doubled again when it answers. */
  #span = MOST_BLOCKS_AT_ONCE;

  constructor(private readonly options: FollowerOptions) {}

  /** Reads on to the present head. */
  async follow(): Promise<void> {
    try {
      while (await this.#advance());
      await reopenOrphans(this.options.db);
    } catch (error) {
      if (!(error instanceof Overtaken)) throw error;
    }
  }

  /** True when there may be more to read. */
  async #advance(): Promise<boolean> {
    const at = await this.#position();
    const head = await this.#block("latest");
    if (head === undefined) return false;
    if (at !== undefined && !(await this.#isOnChain(at, head))) {
      await this.#goBack(at);
      return true;
    }
    const from = at === undefined ? this.options.deploymentBlock : at.number + 1;
    if (head.number < from) return false;
    await this.#read(at, from, Math.min(head.number, from + this.#span - 1), head);
    return true;
  }

  async #position(): Promise<Block | undefined> {
    return this.options.db.selectFrom("followed_blocks").selectAll().orderBy("number", "desc").limit(1).executeTakeFirst();
  }

  async #isOnChain(block: Block, head: Block): Promise<boolean> {
    if (block.number === head.number) return block.hash === head.hash;
    const now = await this.#block(block.number);
    // A node that is behind does not have the block: that is no reorg, there is just nothing to do yet.
    return now === undefined ? head.number < block.number && !(await this.#isShorterChain(head)) : now.hash === block.hash;
  }

  /** A head below where we stand is a reorg only if it is a block we did not see there. */
  async #isShorterChain(head: Block): Promise<boolean> {
    const seen = await this.options.db.selectFrom("followed_blocks").select("hash").where("number", "=", head.number).executeTakeFirst();
    return seen !== undefined && seen.hash !== head.hash;
  }

  async #block(number: number | "latest"): Promise<Block | undefined> {
    const tag = number === "latest" ? number : hex(number);
    const block = await this.options.rpc.call<{ number: string; hash: string } | null>("eth_getBlockByNumber", [tag, false]);
    return block === null ? undefined : { number: Number(block.number), hash: block.hash };
  }

  async #read(at: Block | undefined, from: number, to: number, head: Block): Promise<void> {
    const logs = await this.#logs(from, to);
    if (logs === undefined) return;
    const blocks = await this.#blocksToKeep(from, to, head);
    const hashes = new Map(blocks.map(({ number, hash }) => [number, hash]));
    const isTorn = logs.some((log) => (hashes.get(Number(log.blockNumber)) ?? log.blockHash) !== log.blockHash);
    if (isTorn) return;
    await this.options.db.transaction().execute(async (trx) => {
      await this.#moveFrom(trx, at);
      const rows = logs.map(eventRow).filter((row) => row !== undefined);
      for (let start = 0; start < rows.length; start += 500)
        await trx
          .insertInto("chain_events")
          .values(rows.slice(start, start + 500))
          .execute();
      await trx.insertInto("followed_blocks").values(blocks).execute();
      await this.#forgetFinal(trx, to);
    });
  }

  async #logs(from: number, to: number): Promise<readonly ChainLog[] | undefined> {
    try {
      const logs = await this.options.rpc.call<readonly ChainLog[]>("eth_getLogs", [
        { address: this.options.contractAddress, fromBlock: hex(from), toBlock: hex(to) },
      ]);
      this.#span = Math.min(MOST_BLOCKS_AT_ONCE, this.#span * 2);
      return logs;
    } catch (error) {
      if (this.#span === 1) throw error;
      this.#span = Math.max(1, Math.floor(this.#span / 4));
      return undefined;
    }
  }

  /** Hashes of the blocks that may still be taken back, and of the last one in any case: it is where the follower stands. */
  async #blocksToKeep(from: number, to: number, head: Block): Promise<readonly Block[]> {
    const first = Math.min(to, Math.max(from, head.number - this.options.finalityDepth));
    const numbers = Array.from({ length: to - first + 1 }, (_, index) => first + index);
    const blocks = await Promise.all(numbers.map((number) => this.#block(number)));
    return blocks.filter((block) => block !== undefined);
  }

  /** The follower stands where it thought it did, and nobody else moves it until this transaction ends. */
  async #moveFrom(trx: Trx, at: Block | undefined): Promise<void> {
    await sql`select pg_advisory_xact_lock(hashtext('chain_events'))`.execute(trx);
    const now = await trx.selectFrom("followed_blocks").selectAll().orderBy("number", "desc").limit(1).executeTakeFirst();
    if (now?.hash !== at?.hash) throw new Overtaken();
  }

  async #forgetFinal(trx: Trx, head: number): Promise<void> {
    const final = head - this.options.finalityDepth;
    await trx.deleteFrom("followed_blocks").where("number", "<", final).execute();
    await trx.updateTable("submissions").set({ state: "confirmed" }).where("state", "=", "mined").where("block_number", "<=", final).execute();
  }

  async #goBack(at: Block): Promise<void> {
    const fork = await this.#lastCommonBlock();
    this.options.log.warn({ from: at.number, to: fork }, "a reorg: events and submissions above the last common block are taken back");
    await this.options.db.transaction().execute(async (trx) => {
      await this.#moveFrom(trx, at);
      await retractEvents(trx, fork);
      await trx.updateTable("account_turns").set({ last_block: fork }).where("last_block", ">", fork).execute();
      await trx.deleteFrom("followed_blocks").where("number", ">", fork).execute();
    });
    this.options.onReorg();
  }

  /** Below the oldest block kept if none is common any more: deeper than what is taken as final. */
  async #lastCommonBlock(): Promise<number> {
    const kept = await this.options.db.selectFrom("followed_blocks").selectAll().orderBy("number", "desc").execute();
    for (const block of kept) if ((await this.#block(block.number))?.hash === block.hash) return block.number;
    return (kept.at(-1)?.number ?? 0) - 1;
  }
}

async function retractEvents(trx: Trx, fork: number): Promise<void> {
  const gone = await trx
    .updateTable("chain_events")
    .set({ retracted: true })
    .where("block_number", ">", fork)
    .where("removed", "=", false)
    .where("retracted", "=", false)
    .returningAll()
    .execute();
  // Taken back in the opposite order in which they happened.
  const entries = gone
    .sort((a, b) => b.cursor - a.cursor)
    .map(({ cursor: _, args, ...event }) => ({ ...event, args: JSON.stringify(args), removed: true, retracted: false }));
  if (entries.length > 0) await trx.insertInto("chain_events").values(entries).execute();
}

/**
 * Submissions whose block is not on the chain are open again: a reorg took it, whether the follower had seen that block or not (a receipt may be quicker than
 * the follower, and its outcome may be written after the follower went on). What had been answered is kept, so that another outcome is noticed; the first
 * answer of all stays when the chain changes its mind twice.
 */
async function reopenOrphans(db: Db): Promise<void> {
  await sql`
    update submissions set
      before = coalesce(before, jsonb_strip_nulls(jsonb_build_object('result', result, 'error', error))),
      state = 'sent', transaction_hash = null, block_number = null, block_hash = null, result = null, error = null, instance_id = null, updated_at = now()
    where state in ('mined', 'failed', 'expired', 'changed')
      and block_number between (select min(number) from followed_blocks) and (select max(number) from followed_blocks)
      and not exists (select from followed_blocks where number = submissions.block_number and hash = submissions.block_hash)`.execute(db);
}

const hex = (number: number): string => `0x${number.toString(16)}`;
