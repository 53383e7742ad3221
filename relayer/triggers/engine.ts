/**
 * Makes triggers fire: turns due times and logs into firings, claims them, and makes them, fairly between accounts.
 * Which of them compute is the executor's to decide: one that sleeps takes no place there, but stays under way here.
 */
import { setImmediate } from "node:timers/promises";
import type { RawBuilder } from "kysely";
import type { Logger } from "../../protocol/log";
import { inScope, FairShare } from "../../protocol/fairShare";
import { KIB, MIB, RUN_LIMITS } from "../../protocol/limits";
import { PeriodicTask } from "../periodicTask";
import type { Leases } from "../chain/leases";
import type { Credits } from "../credits";
import type { Db } from "../store/database";
import { attachSeen } from "./book";
import { scheduleDue, workOf, type Batch, type NewFiring, type Work } from "./due";
import { fire, type ByHand, type FireParts } from "./fire";
import type { Firings } from "./firings";
import type { LogSearch } from "./logs";
import type { Within } from "./room";
import type { Claimed, Fired } from "./types";

export interface EngineOptions extends Omit<FireParts, "firings" | "credits"> {
  readonly db: Db;
  readonly firings: Firings;
  readonly credits: Credits;
  readonly search: LogSearch;
  readonly leases: Pick<Leases, "claim">;
  /** Firings under way at the same time. */
  readonly places: number;
  /** Of one account. */
  readonly placesEach: number;
  readonly log: Logger;
  readonly turnMs?: number;
  /** SQL of the time when triggers are due; default: the database's clock, which all relayers share. */
  readonly now?: () => RawBuilder<Date>;
}

const TURN_MS = 100;
/** While nothing is expected; hooks of other relayers are these relayers' to make. */
const REST_MS = 500;
const SEARCH_MS = 500;
const SWEEP_MS = 1_000;
/** Looks at all firings that wait. */
const PAUSED_MS = 60_000;
/** Of all and of an account: claimed beyond its places, so that none is empty while the next turn is awaited. */
const CLAIMED_PER_PLACE = { all: 1.5, each: 2 };
/** Of what may be claimed: for accounts that have nothing claimed, however much others have waiting. */
const KEPT_FOR_NEW = 1 / 4;
/** Their runs may sleep: so many that a hundred accounts with all of theirs asleep leave room for others. */
const PLACES = 512;
const MIN_PLACES_EACH = 4;
/** Sealed params and code that are on their way to the executor; only large ones wait for it. */
const MEMORY_BYTES = 128 * MIB;
const LARGE_BYTES = 64 * KIB;
/** As read, and as sent. */
const MEMORY_PER_BYTE = 2;

/** An account's firings compute in at most half of the executor's places. @param poolSize 0 if it is unknown */
export const placesFor = (poolSize: number): Pick<EngineOptions, "places" | "placesEach"> => ({
  places: Math.max(PLACES, poolSize),
  placesEach: Math.max(MIN_PLACES_EACH, Math.floor(poolSize / 2)),
});

export class Engine {
  readonly #options: EngineOptions;
  readonly #share: FairShare;
  readonly #memory = new FairShare({ total: MEMORY_BYTES, unit: MEMORY_PER_BYTE * RUN_LIMITS.codeBytes });
  readonly #turns: PeriodicTask;
  readonly #work: readonly PeriodicTask[];
  readonly #making = new Set<Promise<unknown>>();
  #isStopping = false;
  /** As of the newest turn. */
  #found: Pick<Work, "isWatching" | "isOpen"> = { isWatching: true, isOpen: true };
  /** Since when each turn has found due times, by the clock of `now`. */
  #noticedAt: Date | undefined;
  /** In milliseconds of `performance.now()`; who hurries a turn under way ends the rest that it begins. */
  #restsUntil = 0;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#share = new FairShare({ total: options.places, mostEach: options.placesEach });
    const onError = (error: unknown): void => options.log.warn({ err: error }, "triggers: tried again");
    const onFailedTurn = (error: unknown): void => {
      // What is due meanwhile is not noticed.
      this.#noticedAt = undefined;
      onError(error);
    };
    this.#turns = new PeriodicTask(() => this.#turn(), options.turnMs ?? TURN_MS, onFailedTurn);
    this.#work = [
      this.#turns,
      new PeriodicTask(() => this.#searchLogs(), SEARCH_MS, onError),
      new PeriodicTask(() => this.#sweep(), SWEEP_MS, onError),
      new PeriodicTask(() => options.firings.endPaused(), PAUSED_MS, onError),
    ];
  }

  start(): void {
    for (const work of this.#work) work.start();
  }

  /** Looks for firings now. */
  hurry(): void {
    this.#restsUntil = 0;
    this.#turns.hurry();
  }

  /**
   * Makes a firing at once, for a caller that waits for its end. Undefined if its cause has one already, or if it
   * will be made later. @param within stores it there
   */
  async make(firing: NewFiring, by?: ByHand, within?: Within): Promise<Fired | undefined> {
    const claimed = await this.#options.firings.addOwn(firing, within);
    return claimed && this.#make(claimed, by);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#work.map((work) => work.stop()));
    await Promise.all(this.#making);
  }

  /** Most turns find nothing: one look at the indexes costs a tenth of what taking nothing would. */
  async #turn(): Promise<void> {
    const nowMs = performance.now();
    if (nowMs < this.#restsUntil) return;
    this.#restsUntil = nowMs + REST_MS;
    const { db, now } = this.#options;
    const { isDue, isWaiting, isSoon, isWatching, isOpen, now: lookedAt } = await workOf(db, REST_MS, now?.());
    this.#found = { isWatching, isOpen };
    this.#noticedAt = isDue ? (this.#noticedAt ?? lookedAt) : undefined;
    if (isDue || isWaiting || isSoon || isWatching) this.#restsUntil = 0;
    if (isDue) await this.#scheduleDue();
    else if (isWaiting) await this.#claim();
  }

  /**
   * All of them in one turn, however many they are, so that none is late for the others; what has become a firing is
   * made meanwhile.
   */
  async #scheduleDue(): Promise<void> {
    const { db, now } = this.#options;
    let after: Batch["next"];
    do {
      ({ next: after } = await scheduleDue(db, { now: now?.(), noticedAt: this.#noticedAt, after }));
      await this.#claim();
      await setImmediate();
    } while (after !== undefined && !this.#isStopping);
  }

  async #claim(): Promise<void> {
    const { firings, places, placesEach } = this.#options;
    const total = Math.ceil(places * CLAIMED_PER_PLACE.all);
    const most = total - firings.claimed;
    if (most <= 0 || this.#isStopping) return;
    const kept = Math.floor(total * KEPT_FOR_NEW);
    for (const claimed of await firings.claim(most, placesEach * CLAIMED_PER_PLACE.each, kept))
      void this.#make(claimed);
  }

  #make(claimed: Claimed, by?: ByHand): Promise<Fired | undefined> {
    const made = inScope(claimed.accountId, undefined, async (scope) => {
      // Somebody waits for a run by hand: it is one of the account's own.
      if (claimed.kind !== "manual") await scope.take(this.#share);
      const bytes = claimed.bytes * MEMORY_PER_BYTE;
      const memory = claimed.bytes < LARGE_BYTES ? undefined : await scope.take(this.#memory, bytes);
      return fire({ ...this.#options, onSent: () => memory?.rest() }, claimed, by);
    }).catch((error: unknown) => {
      // Its row is found again, and made again if nothing ran.
      this.#options.log.warn({ err: error, firing: claimed.id }, "a firing could not be ended");
      this.#options.firings.lose(claimed);
      return undefined;
    });
    this.#making.add(made);
    void made.finally(() => {
      this.#making.delete(made);
      if (!this.#isStopping) this.hurry();
    });
    return made;
  }

  async #searchLogs(): Promise<void> {
    if (!this.#found.isWatching) return;
    if (await this.#options.leases.claim("find_logs")) await this.#options.search.turn();
  }

  async #sweep(): Promise<void> {
    if (!this.#found.isOpen) return;
    const { db, firings, credits } = this.#options;
    await firings.releaseLost();
    for (const lost of await firings.interrupted()) {
      const { run } = (await credits.runs.find(lost.runId)) ?? {};
      // It may yet settle: its relayer may be cut off and not dead.
      const detail = "The service stopped during the run.";
      await firings.end(
        lost,
        run === undefined
          ? { outcome: "interrupted", detail }
          : { outcome: run.outcome, durationMs: run.durationMs, costCents: run.costCents },
      );
    }
    await attachSeen(db, this.#options.search);
  }
}
