/**
 * Follows the contract's events block by block. The hashes of the blocks that are not final are kept, and of the newest
 * final one: when the follower's block is no longer canonical, it returns to the last common block and continues from
 * there. A chain without the final block is not followed: the RPC client refuses it, and an operator decides.
 */
import { sql } from "kysely";
import type { Logger } from "pino";
import type { Address } from "../../../protocol/ids";
import type { Db, Trx } from "../../store/database";
import { lockChainEvents } from "../../store/locks";
import type { KnownBlock, RpcClient } from "../rpc/client";
import type { Block, Header } from "./blockLogs";
import { BlockReader, UnreadLogs } from "./blockReader";
import { appendEvents } from "./eventList";
import { eventRow, type ChainLog } from "./eventRows";
import {
  confirm,
  newestClaimed,
  passedBlocks,
  reopenExecuted,
  reopenIn,
  reopenOrphans,
  undoAbove,
  undoClaims,
} from "./reorg";

export interface FollowerOptions {
  readonly db: Db;
  readonly rpc: RpcClient;
  readonly contractAddress: Address;
  readonly deploymentBlock: number;
  /** Depth from which blocks are treated as final. */
  readonly finalityDepth: number;
  readonly log: Logger;
  /** Called after a reorg has been stored, or events of transactions that had counted as not executed. */
  readonly onReorg: () => void;
}

/** Near the head, blocks are read individually, up to this many per step. */
const NEAR_AT_ONCE = 64;
/** Old blocks are compared with the chain in batches of this size at most. */
const COMPARED_AT_ONCE = 64;
const HEADS_WITHIN_MS = 2_000;
/** Most reorgs take back a block or two. */
const COMPARED_FIRST = 2;

/** Another instance advanced the follower concurrently. */
class Overtaken extends Error {
  override readonly name = "Overtaken";
}

export class Follower {
  readonly #reader: BlockReader;
  /** As last read. */
  #head = Infinity;
  /** Up to where this process has read blocks since they became final. */
  #finalUpTo: number | undefined;
  readonly #options: FollowerOptions;

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#reader = new BlockReader(options.rpc, options.contractAddress);
  }

  /** Reads up to the current head. */
  async follow(): Promise<void> {
    try {
      while (await this.#advance());
      await reopenOrphans(this.#options.db);
      await this.#checkPassed();
      await this.#checkClaimed();
    } catch (error) {
      if (!(error instanceof Overtaken)) throw error;
    }
  }

  /**
   * The oldest block kept, if it is final: any endpoint of our chain has it. Not the first of all: development nodes
   * make that one again when they load a stored chain.
   */
  async finalBlock(): Promise<KnownBlock | undefined> {
    const { db, finalityDepth } = this.#options;
    return db
      .selectFrom("followed_blocks")
      .selectAll()
      .where("number", ">", 0)
      .where("number", "<=", (blocks) =>
        blocks.selectFrom("followed_blocks").select(sql<number>`max(number) - ${finalityDepth}::int8`.as("final")),
      )
      .orderBy("number")
      .limit(1)
      .executeTakeFirst();
  }

  /** Returns true when there may be more to read. */
  async #advance(): Promise<boolean> {
    const { deploymentBlock, finalityDepth } = this.#options;
    const at = await this.#position();
    // An operator has gone back.
    if (at !== undefined && at.number < (this.#finalUpTo ?? 0)) this.#finalUpTo = undefined;
    const head = await this.#reader.head();
    if (head === undefined) return false;
    this.#head = head.number;
    const isOnChain = at === undefined || (await this.#isOnChain(at, head));
    if (isOnChain === undefined) return false;
    if (at !== undefined && !isOnChain) return this.#goBack(at, head);
    const from = at === undefined ? deploymentBlock : at.number + 1;
    if (head.number < from) return false;
    const final = head.number - finalityDepth;
    return from <= final
      ? this.#readFinal(at, from, Math.min(final, from + this.#reader.span - 1))
      : this.#readNear(at, from, head.number);
  }

  async #position(): Promise<Block | undefined> {
    return this.#options.db
      .selectFrom("followed_blocks")
      .selectAll()
      .orderBy("number", "desc")
      .limit(1)
      .executeTakeFirst();
  }

  /** Undefined when the chain below its head cannot be read. */
  async #isOnChain(block: Block, head: Block): Promise<boolean | undefined> {
    if (block.number === head.number) return block.hash === head.hash;
    const now = await this.#reader.block(block.number);
    if (now !== undefined) return now.hash === block.hash;
    // A lagging node does not have the block: that is no reorg, there is nothing to do yet.
    return head.number < block.number ? !(await this.#isShorterChain(head)) : undefined;
  }

  /** A head below the follower's block is a reorg only if its hash differs from the one stored at that height. */
  async #isShorterChain(head: Block): Promise<boolean> {
    const seen = await this.#options.db
      .selectFrom("followed_blocks")
      .select("hash")
      .where("number", "=", head.number)
      .executeTakeFirst();
    return seen !== undefined && seen.hash !== head.hash;
  }

  /** Reads old blocks with one query. */
  async #readFinal(at: Block | undefined, from: number, to: number): Promise<boolean> {
    const logs = await this.#reader.logsOfRange(from, to);
    const last = await this.#reader.block(to);
    if (last === undefined) return false;
    const isTorn =
      logs?.some(({ blockNumber, blockHash }) => Number(blockNumber) === to && blockHash !== last.hash) === true;
    if (logs === undefined || isTorn) return true;
    const near = await this.#logsOnceFinal(await this.#firstUnsettled(from), from - 1);
    await this.#keep(at, [last], [...near, ...logs]);
    this.#finalUpTo = to;
    return true;
  }

  /**
   * Reads blocks that may still be reorganized, each linked to its parent and with all its logs; as far as they are
   * reliable.
   */
  async #readNear(at: Block | undefined, from: number, to: number): Promise<boolean> {
    const blocks = await this.#reader.chainOf(from, Math.min(to, from + NEAR_AT_ONCE - 1));
    if (at !== undefined && blocks[0] !== undefined && blocks[0].parentHash !== at.hash) return false;
    const logs = await Promise.all(blocks.map((block) => this.#reader.logsOf(block)));
    const missing = logs.findIndex((ofBlock) => ofBlock === undefined);
    const readable: readonly Header[] = missing === -1 ? blocks : blocks.slice(0, missing);
    const newest = readable.at(-1)?.number;
    if (newest === undefined) return false;
    const { finalityDepth } = this.#options;
    const final = await this.#logsOnceFinal(await this.#firstUnsettled(from), newest - finalityDepth);
    const near = logs.slice(0, readable.length).flatMap((ofBlock) => ofBlock ?? []);
    await this.#keep(at, readable, [...final, ...near]);
    this.#finalUpTo = newest - finalityDepth;
    return from + readable.length <= to && missing === -1;
  }

  /** Read once more: near the head, nodes that do not have a block's logs yet may have said that it has none. */
  async #logsOnceFinal(from: number, to: number): Promise<readonly ChainLog[]> {
    const logs: (readonly ChainLog[])[] = [];
    for (let next = Math.max(from, this.#options.deploymentBlock); next <= to;) {
      const last = Math.min(to, next + this.#reader.span - 1);
      const read = await this.#reader
        .logsOfRange(next, last, { once: true })
        .catch((error: unknown) => this.#leaveUnread(next, error));
      if (read === undefined) continue;
      logs.push(read);
      next = last + 1;
    }
    return logs.flat();
  }

  /** What was read of the block near the head stays: anybody can make one whose logs no endpoint returns. */
  #leaveUnread(block: number, error: unknown): readonly ChainLog[] {
    if (!(error instanceof UnreadLogs)) throw error;
    this.#options.log.warn(
      { block, err: error },
      "the logs of a final block cannot be read once more; its events are those read near the head",
    );
    return [];
  }

  /** Of the blocks below `from`, the first that was read near the head and not once more since it became final. */
  async #firstUnsettled(from: number): Promise<number> {
    const { db, finalityDepth } = this.#options;
    if (this.#finalUpTo !== undefined) return Math.max(from - finalityDepth, this.#finalUpTo + 1);
    // After the catch-up of an earlier process there is only the position.
    const kept = await db.selectFrom("followed_blocks").select("number").limit(2).execute();
    return kept.length > 1 ? from - finalityDepth : from;
  }

  async #keep(at: Block | undefined, blocks: readonly Block[], logs: readonly ChainLog[]): Promise<void> {
    const rows = logs.map(eventRow).filter((row) => row !== undefined);
    await this.#options.db.transaction().execute(async (trx) => {
      await this.#moveFrom(trx, at);
      await appendEvents(trx, rows, at?.number ?? -1);
      await trx
        .insertInto("followed_blocks")
        .values(blocks.map(({ number, hash }) => ({ number, hash })))
        .execute();
      await reopenExecuted(
        trx,
        rows.map(({ transaction_hash }) => transaction_hash),
      );
      await this.#forgetFinal(trx, blocks.at(-1)?.number ?? 0);
    });
  }

  /** Checks that the follower's position is unchanged, and locks it until this transaction ends. */
  async #moveFrom(trx: Trx, at: Block | undefined): Promise<void> {
    await lockChainEvents(trx);
    const now = await trx
      .selectFrom("followed_blocks")
      .selectAll()
      .orderBy("number", "desc")
      .limit(1)
      .executeTakeFirst();
    if (now?.hash !== at?.hash) throw new Overtaken();
  }

  /** Keeps only blocks that may still be reorganized, and confirms the transactions of the others. */
  async #forgetFinal(trx: Trx, newest: number): Promise<void> {
    const final = newest - this.#options.finalityDepth;
    await confirm(trx, final);
    await trx.deleteFrom("followed_blocks").where("number", "<", final).execute();
  }

  /**
   * Transactions in blocks that this follower passed without reading them, or whose receipt was stored later: the chain
   * is asked whether it has their blocks.
   */
  async #checkPassed(): Promise<void> {
    const { db } = this.#options;
    for (const block of await passedBlocks(db)) {
      const now = await this.#reader.block(block.number);
      if (now?.hash === block.hash) await confirm(db, block.number, block);
      else if (now !== undefined) await reopenIn(db, block);
    }
  }

  /** A receipt with a wrong block number would have all reads wait for that block. */
  async #checkClaimed(): Promise<void> {
    const { db, rpc, finalityDepth, log, onReorg } = this.#options;
    const newest = await newestClaimed(db);
    if (newest <= this.#head + finalityDepth) return;
    const heads = await rpc.heads(HEADS_WITHIN_MS);
    const highest = Math.max(...heads.map((each) => (each.isOfOtherChain ? 0 : (each.head ?? 0)))) + finalityDepth;
    if (highest === finalityDepth || newest <= highest) return;
    log.warn(
      { newest, highest },
      "transactions are said to be in blocks that no endpoint has; they are looked up again",
    );
    await db.transaction().execute((trx) => undoClaims(trx, highest));
    onReorg();
  }

  async #goBack(at: Block, head: Block): Promise<boolean> {
    const fork = await this.#lastCommonBlock(head);
    if (fork === undefined) return false;
    this.#options.log.warn(
      { from: at.number, to: fork.number },
      "a reorg: events and transactions above the last common block are taken back",
    );
    await this.#options.db.transaction().execute(async (trx) => {
      await this.#moveFrom(trx, at);
      await undoAbove(trx, fork);
    });
    this.#options.onReorg();
    return true;
  }

  /**
   * The newest block read that is still canonical. All are kept down to a final one, which the endpoints have, or else
   * to the contract's first. Undefined while the endpoints do not say.
   */
  async #lastCommonBlock(head: Block): Promise<Block | undefined> {
    const { db, deploymentBlock } = this.#options;
    const kept = await db.selectFrom("followed_blocks").selectAll().orderBy("number", "desc").execute();
    const { common, isUnread } = await this.#newestCommon(kept, head);
    if (common !== undefined || isUnread || (await this.finalBlock()) !== undefined) return common;
    return this.#reader.block(Math.max(0, deploymentBlock - 1));
  }

  /**
   * Compares from the newest block on, in growing steps: reading dozens of blocks at once would fail nearly every time
   * on an unreliable endpoint.
   */
  async #newestCommon(
    known: readonly Block[],
    head: Block,
  ): Promise<{ readonly common?: Block; readonly isUnread: boolean }> {
    const below = known.filter(({ number }) => number <= head.number);
    let size = COMPARED_FIRST;
    for (let start = 0; start < below.length; start += size, size = Math.min(2 * size, COMPARED_AT_ONCE)) {
      const step = below.slice(start, start + size);
      const now = await Promise.all(step.map(({ number }) => this.#reader.block(number)));
      for (const [index, common] of step.entries()) {
        if (now[index] === undefined) return { isUnread: true };
        if (now[index].hash === common.hash) return { common, isUnread: false };
      }
    }
    return { isUnread: false };
  }
}
