/** Webhooks: what the service tells accounts by itself. The outbox is filled by triggers and `store/outbox.ts`. */
import type { Chain } from "../chain/types";
import { PeriodicTask } from "../periodicTask";
import { switchOffFlooded } from "./deliveries";
import { tellOfExpiries } from "./expiries";
import { Sender, type SenderOptions } from "./sender";

export type { AttemptOutcome } from "./sender";
export { lateness } from "./deliveries";
export { Webhooks } from "./registry";

const EXPIRIES_MS = 10_000;
const FLOODED_MS = 60_000;

export interface WebhookWorkOptions extends SenderOptions {
  readonly chain: Pick<Chain, "key">;
}

/** The background work: sends what is due, tells of keys that expire, switches flooded webhooks off. */
export function startWebhooks(options: WebhookWorkOptions): () => Promise<void> {
  const { db, chain, onError } = options;
  const parts = [
    new Sender(options),
    new PeriodicTask(() => tellOfExpiries(db, chain), EXPIRIES_MS, onError),
    new PeriodicTask(() => switchOffFlooded(db), FLOODED_MS, onError),
  ];
  for (const part of parts) part.start();
  return async () => void (await Promise.all(parts.map((part) => part.stop())));
}
