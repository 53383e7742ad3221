/** What a history is made of. */
import type { KeywrightError } from "../../../protocol/errors";
import type { Side } from "../statementFaults";
import type { Nature } from "./chain";
import type { EndpointFault } from "./endpoint";

/** Unavailable, or declines to sign writes for good: as with tags that became too old. */
export type ExecutorFault = "down" | "declines";

export type Step =
  | { readonly do: "wait"; readonly ms: number }
  | {
      readonly do: "write";
      readonly account: number;
      readonly relayer: number;
      readonly nature: Nature;
      readonly repeats: boolean;
    }
  | { readonly do: "burst"; readonly relayer: number; readonly natures: readonly Nature[] }
  | { readonly do: "race"; readonly account: number; readonly natures: readonly Nature[] }
  | { readonly do: "endpoint"; readonly which: number | "all"; readonly fault: EndpointFault; readonly ms: number }
  | { readonly do: "executor"; readonly fault: ExecutorFault; readonly ms: number }
  | { readonly do: "no blocks"; readonly ms: number }
  | { readonly do: "base fee"; readonly times: number; readonly ms: number }
  | { readonly do: "reorg"; readonly depth: number; readonly keep: boolean }
  | { readonly do: "drop pool" }
  | { readonly do: "revive" }
  | { readonly do: "use nonce"; readonly payer: number }
  /** The payer has this much left for gas. */
  | { readonly do: "spend"; readonly payer: number; readonly leftGwei: number }
  /** Nodes keep the states of few blocks. */
  | { readonly do: "prune"; readonly ms: number }
  /** The operator cancels the newest transaction that is open. */
  | { readonly do: "cancel" }
  /** The operator wants so many payers. */
  | { readonly do: "resize"; readonly payers: number }
  | { readonly do: "fail statement"; readonly relayer: number; readonly nth: number; readonly side: Side }
  | {
      readonly do: "kill";
      readonly relayer: number;
      readonly nth: number;
      readonly side: Side;
      readonly downMs: number;
    }
  | { readonly do: "retention" }
  | { readonly do: "clock"; readonly ms: number };

export interface History {
  readonly seed: number;
  readonly endpoints: number;
  readonly relayers: number;
  readonly steps: readonly Step[];
}

/** Neither do reorgs change the order of writes, nor does another chain answer for it. */
export const hasOneChain = ({ steps }: History): boolean =>
  steps.every((step) => step.do !== "reorg" && !(step.do === "endpoint" && step.fault === "other chain"));

/** One client's wish, under one idempotency key. */
export interface Wish {
  readonly account: string;
  readonly name: string;
  readonly nature: Nature;
  readonly repeats: boolean;
  /** `open`: the client has no final answer. */
  answer: "open" | "done" | "refused" | "declined" | "told it did not happen";
  /** The operator cancelled it after it was answered, while a reorg had it to be made again. */
  isWithdrawn?: boolean;
  group?: string;
  submission?: string;
  error?: KeywrightError;
}
