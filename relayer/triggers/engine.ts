/**
 * Makes triggers fire: turns due times and logs into firings, claims them, and makes them, fairly between accounts and
 * never with more of the executor's places than others can spare.
 */
import type { Logger } from "../../protocol/log";
import { inScope, FairShare } from "../../protocol/fairShare";
import { PeriodicTask } from "../periodicTask";
import type { Leases } from "../chain/leases";
import type { Credits } from "../credits";
import type { Db } from "../store/database";
import { attachSeen } from "./book";
import { scheduleDue, workOf, type NewFiring } from "./due";
import { fire, type ByHand, type FireParts } from "./fire";
import type { Firings } from "./firings";
import type { LogSearch } from "./logs";
import type { Claimed, Fired } from "./types";

export interface EngineOptions extends Omit<FireParts, "firings" | "credits"> {
  readonly db: Db;
  readonly firings: Firings;
  readonly credits: Credits;
  readonly search: LogSearch;
  readonly leases: Pick<Leases, "claim">;
  /** Runs of triggers at the same time: a part of the executor's places, so that requests never wait for them. */
  readonly places: number;
  readonly log: Logger;
  readonly turnMs?: number;
}

const TURN_MS = 100;
const SEARCH_MS = 500;
const SWEEP_MS = 1_000;
/** Looks at all firings that wait. */
const PAUSED_MS = 60_000;
/** Claimed for each place, so that none is empty while the next turn is awaited. */
const CLAIMED_PER_PLACE = 4;

export class Engine {
  readonly #options: EngineOptions;
  readonly #share: FairShare;
  readonly #turns: PeriodicTask;
  readonly #work: readonly PeriodicTask[];
  readonly #making = new Set<Promise<unknown>>();
  #isStopping = false;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#share = new FairShare({ total: options.places });
    const onError = (error: unknown): void => options.log.warn({ err: error }, "triggers: tried again");
    this.#turns = new PeriodicTask(() => this.#turn(), options.turnMs ?? TURN_MS, onError);
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
    this.#turns.hurry();
  }

  /**
   * Makes a firing at once, for a caller that waits for its end. Undefined if its cause has one already, or if it
   * will be made later.
   */
  async make(firing: NewFiring, by?: ByHand): Promise<Fired | undefined> {
    const claimed = await this.#options.firings.addOwn(firing);
    return claimed && this.#make(claimed, by);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#work.map((work) => work.stop()));
    await Promise.all(this.#making);
  }

  /** Most turns find nothing: one look at the indexes costs a tenth of what taking nothing would. */
  async #turn(): Promise<void> {
    const { db, firings, places } = this.#options;
    const { isDue, isWaiting } = await workOf(db);
    if (isDue) await scheduleDue(db);
    if (!isDue && !isWaiting) return;
    const most = places * CLAIMED_PER_PLACE - firings.claimed;
    if (most <= 0 || this.#isStopping) return;
    for (const claimed of await firings.claim(most, places * 2)) void this.#make(claimed);
  }

  #make(claimed: Claimed, by?: ByHand): Promise<Fired | undefined> {
    const made = inScope(claimed.accountId, undefined, async (scope) => {
      // Somebody waits for a run by hand: it is one of the account's own.
      if (claimed.kind !== "manual") await scope.take(this.#share);
      return fire(this.#options, claimed, by);
    }).catch((error: unknown) => {
      // Its row is found again, and made again if nothing ran.
      this.#options.log.warn({ err: error, firing: claimed.id }, "a firing could not be ended");
      this.#options.firings.lose(claimed);
      return undefined;
    });
    this.#making.add(made);
    void made.finally(() => {
      this.#making.delete(made);
      if (!this.#isStopping) this.#turns.hurry();
    });
    return made;
  }

  async #searchLogs(): Promise<void> {
    if (await this.#options.leases.claim("find_logs")) await this.#options.search.turn();
  }

  async #sweep(): Promise<void> {
    const { db, firings, credits } = this.#options;
    await attachSeen(db, this.#options.search);
    await firings.releaseLost();
    for (const lost of await firings.interrupted()) {
      const { run } = (await credits.runs.find(lost.runId)) ?? {};
      const detail = "The service stopped during the run; nothing was charged.";
      await firings.end(
        lost,
        run === undefined
          ? { outcome: "interrupted", detail }
          : { outcome: run.outcome, durationMs: run.durationMs, costCents: run.costCents },
      );
    }
  }
}
