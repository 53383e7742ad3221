/**
 * The keyholder's interface to its TEE. Only a dstack endpoint is supported; `simulated` is the same client with the
 * development double.
 */
import type { TeeKind } from "../../protocol/attestation";

export type { TeeKind };

export interface TeeQuote {
  /** Hex without 0x, as dstack gives it. */
  quote: string;
  /** JSON text: an array of events. */
  event_log: string;
  /** JSON text; empty when the guest agent gives none. */
  vm_config: string;
}

export interface TeeSource {
  readonly kind: TeeKind;
  /**
   * The 32 bytes from which every key is derived, requested under one fixed path. Called once at start; the caller
   * zero-fills the buffer.
   * Throws `TeeError`: the service cannot start without a root key.
   */
  rootKey(): Promise<Buffer>;
  /** A quote over 64 bytes of report data. Throws KeywrightError `attestation_unavailable`. */
  quote(reportData: Buffer): Promise<TeeQuote>;
  /**
   * dstack's info object with `tcb_info` parsed; undefined when `kind` is none. Throws KeywrightError
   * `attestation_unavailable`.
   */
  info(): Promise<Record<string, unknown> | undefined>;
  close(): Promise<void>;
}

/** The guest agent gave no usable answer. The message names the call and the problem, never the answer's content. */
export class TeeError extends Error {
  override readonly name = "TeeError";
  constructor(
    readonly reason: "unreachable" | "timed_out" | "too_large" | "malformed" | "ended" | "busy" | "not_configured",
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}
