/**
 * The block of the newest write answered by any relayer on this store. Reads are served from that block or later, so a
 * client sees its own write on every relayer. Relayers sharing a store query it each time (another may
 * just have written), one query per tick; a relayer alone on its store keeps the number in memory.
 */
import type { Db } from "../../store/database";

export class LastWrites {
  #asked: Promise<number> | undefined;
  #known: Promise<number> | undefined;
  readonly #db: Db;
  readonly #isAlone: boolean;

  constructor(db: Db, isAlone: boolean) {
    this.#db = db;
    this.#isAlone = isAlone;
  }

  block(): Promise<number> {
    return this.#isAlone ? (this.#known ?? this.#remember(this.#ask())) : this.#askShared();
  }

  /** A write of this relayer was mined in this block. */
  note(block: number): void {
    if (this.#isAlone) void this.#remember(this.block().then((known) => Math.max(known, block)));
  }

  /** Forgets the block: a reorg may have removed it. */
  forget(): void {
    this.#known = undefined;
  }

  /** A failure is not remembered: the store has every write, and is asked again. */
  #remember(known: Promise<number>): Promise<number> {
    this.#known = known;
    known.catch(() => {
      if (this.#known === known) this.forget();
    });
    return known;
  }

  #askShared(): Promise<number> {
    this.#asked ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      this.#asked = undefined;
      return this.#ask();
    });
    return this.#asked;
  }

  async #ask(): Promise<number> {
    const newest = await this.#db
      .selectFrom("account_turns")
      .select("last_block")
      .orderBy("last_block", "desc")
      .limit(1)
      .executeTakeFirst();
    return newest?.last_block ?? 0;
  }
}
