import { State, type KeyState } from "../state";
import { Broken, type Emitted, type Inner } from "./calls";

/** Runs calls on a state: each one happens as a whole or not at all, at the time of its block. */
export class Execution {
  readonly state = new State();
  protected events: Emitted[] = [];
  protected now = 0n;
  protected sender = "";

  constructor(
    admin: string,
    protected readonly places: { readonly contract: string; readonly forwarder: string },
    payerDelay: bigint,
  ) {
    this.state.payerDelay = payerDelay;
    this.state.admin = admin;
  }

  /** Runs one call at a block time. Throws `Broken` with the error and its arguments, leaving the state unchanged. */
  call(sender: string, name: string, args: readonly unknown[], now: bigint): Emitted[] {
    [this.events, this.now, this.sender] = [[], now, sender];
    this.atomically([name, args]);
    return this.events;
  }

  /** Makes a call; a failed one leaves neither changes nor events. */
  protected atomically([name, args]: Inner): void {
    const [before, events] = [structuredClone(this.state), this.events.length];
    const run = this[name as keyof this] as unknown as (...args: unknown[]) => void;
    try {
      run.apply(this, [...args]);
    } catch (error) {
      Object.assign(this.state, before);
      this.events.length = events;
      throw error;
    }
  }

  protected require(holds: boolean, error: string, ...args: unknown[]): asserts holds {
    if (!holds) throw new Broken(error, args);
  }

  protected emit(...event: Emitted): void {
    this.events.push(event);
  }

  /** Which calls of the latest `tryMulticall` failed. */
  get failedAlone(): number[] {
    return this.events.filter(([name]) => name === "CallFailed").map(([, index]) => Number(index));
  }

  /** Of the latest call. */
  get lastTime(): bigint {
    return this.now;
  }

  at(now: bigint): this {
    this.now = now;
    return this;
  }

  isLive(key: KeyState | undefined): key is KeyState {
    return key !== undefined && key.isSet && (key.expiration === 0n || this.now < key.expiration);
  }
}
