/** How runs end, in words. */
import { RUN_ERROR_CODES } from "../../../protocol/errors";

const NAMES: Readonly<Record<string, string>> = {
  succeeded: "Succeeded",
  threw: "Threw an error",
  timed_out: "Timed out",
  permission_denied: "Not permitted",
};

export const outcomeText = (outcome: string): string =>
  NAMES[outcome] ?? outcome.charAt(0).toUpperCase() + outcome.slice(1).replaceAll("_", " ");

/** In a badge. */
export const outcomeWord = (outcome: string): string => outcome.replaceAll("_", " ");

export const OUTCOMES = ["succeeded", ...RUN_ERROR_CODES] as const;

export const OUTCOME_MEANINGS: Readonly<Record<string, string>> = {
  timed_out: "The code took longer than its time limit.",
  out_of_memory: "The code needed more memory than a run may have.",
  response_too_large: "The response was larger than a run may return.",
  logs_too_large: "The code logged more than a run may log.",
  limit_exceeded: "The code asked for more operations than a run may make.",
  invalid_code: "The code is no JavaScript with a function main.",
  permission_denied: "The code asked for a PKP or an operation that this key and this action may not use.",
  key_exposed: "The response or the logs contained a private key, so they were withheld.",
  preempted: "The service stopped the run to make room. It cost nothing.",
  sandbox_crashed: "The run’s process ended. It cost nothing.",
};
