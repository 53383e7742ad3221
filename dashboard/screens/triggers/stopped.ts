/** Apart from the sentences, whose library for cron the overview does without. */
import type { Answer } from "../../../client";

export type Trigger = Answer<"listTriggers">[number];

/** Paused by the service, not by the owner. */
export const stopped = (triggers: readonly Trigger[]): readonly Trigger[] =>
  triggers.filter(({ state, reason }) => state === "paused" && reason !== undefined);
