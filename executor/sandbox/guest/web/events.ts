import { Event, EventTarget } from "event-target-shim";

export { Event, EventTarget };

export class CustomEvent extends Event {
  readonly detail: unknown;

  constructor(
    type: string,
    { detail = null, ...init }: { detail?: unknown; bubbles?: boolean; cancelable?: boolean } = {},
  ) {
    super(type, init);
    this.detail = detail;
  }
}
