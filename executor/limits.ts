/** Limits of runs on this deployment: the defaults, which the operator may change within what the executor supports. */
import { MIB, MAX_WALL_MS, RUN_LIMITS, type RunLimits } from "../protocol/limits";

export type LimitName = keyof typeof RUN_LIMITS;
export const LIMIT_NAMES = Object.keys(RUN_LIMITS) as LimitName[];

/**
 * The highest values an operator may set: above them the channel between the processes or a child's memory would not
 * suffice.
 */
export const LIMIT_CEILINGS: RunLimits = {
  wallMs: MAX_WALL_MS,
  heapMiB: 2048,
  codeBytes: RUN_LIMITS.codeBytes,
  parseMs: MAX_WALL_MS,
  paramsBytes: MIB,
  responseBytes: 4 * MIB,
  logsBytes: 4 * MIB,
  fetches: 1_000,
  lookups: 1_000,
  fetchTimeoutMs: MAX_WALL_MS,
  fetchBytes: 16 * MIB,
  keyOps: 10_000,
  signBytes: 256 * 1024,
  typedDataBytes: 64 * 1024,
  typedDataTypes: 256,
  typedDataPaths: 1_024,
  typedDataHashBytes: 256 * 1024,
  privateKeyReads: 1_000,
  imports: 100,
  importBytes: 16 * MIB,
};

/** `wallMs` → `RUN_LIMIT_WALL_MS`, `heapMiB` → `RUN_LIMIT_HEAP_MIB`. */
export function limitVariable(name: LimitName): string {
  return `RUN_LIMIT_${name
    .replace("MiB", "Mib")
    .replace(/[A-Z]/g, (letter) => `_${letter}`)
    .toUpperCase()}`;
}

/** A run's limits: the deployment's, with the wall time limited to what was paid for. */
export function limitsOfRun(limits: RunLimits, paidMs: number): RunLimits {
  return { ...limits, wallMs: Math.min(limits.wallMs, paidMs) };
}
