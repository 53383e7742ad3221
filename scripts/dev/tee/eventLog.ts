/** An event log as dstack's guest agent keeps it: what was measured into registers 0 to 3, in order. */
import { createHash } from "node:crypto";
import {
  replayRegister,
  RUNTIME_EVENT_TYPE,
  RUNTIME_REGISTER,
  runtimeEventDigest,
} from "../../../protocol/attestation";

export interface LoggedEvent {
  imr: number;
  event_type: number;
  /** Hex, 48 bytes; the run-time events of a quote's log leave it empty. */
  digest: string;
  event: string;
  /** Hex. */
  event_payload: string;
}

/** Who gives a machine the application's keys. */
export interface KeyProvider {
  readonly name: string;
  /** Hex. */
  readonly id: string;
}
export const SIMULATED_KEY_PROVIDER: KeyProvider = { name: "simulated", id: "" };

export interface AppIdentity {
  readonly appId: Buffer;
  readonly composeHash: Buffer;
  readonly instanceId: Buffer;
  readonly keyProvider?: KeyProvider;
}

/** Firmware, kernel and rootfs stand-ins: one event for each of registers 0 to 2. */
const bootEvent = (imr: number): LoggedEvent => ({
  imr,
  event_type: 0x80000000 + imr,
  digest: createHash("sha384").update(`simulated boot ${imr}`).digest("hex"),
  event: "",
  event_payload: "",
});

export const runtimeEvent = (event: string, payload: Buffer): LoggedEvent => ({
  imr: RUNTIME_REGISTER,
  event_type: RUNTIME_EVENT_TYPE,
  digest: runtimeEventDigest(event, payload).toString("hex"),
  event,
  event_payload: payload.toString("hex"),
});

export function buildEventLog({
  appId,
  composeHash,
  instanceId,
  keyProvider = SIMULATED_KEY_PROVIDER,
}: AppIdentity): LoggedEvent[] {
  return [
    ...[0, 1, 2].map(bootEvent),
    runtimeEvent("system-preparing", Buffer.alloc(0)),
    runtimeEvent("app-id", appId),
    runtimeEvent("compose-hash", composeHash),
    runtimeEvent("instance-id", instanceId),
    runtimeEvent("key-provider", Buffer.from(JSON.stringify(keyProvider), "utf8")),
    runtimeEvent("system-ready", Buffer.alloc(0)),
  ];
}

/** As in a quote: the reader computes the digests of run-time events. */
export const withoutRuntimeDigests = (log: readonly LoggedEvent[]): LoggedEvent[] =>
  log.map((event) => (event.event_type === RUNTIME_EVENT_TYPE ? { ...event, digest: "" } : event));

export function registersOf(log: readonly LoggedEvent[]): [Buffer, Buffer, Buffer, Buffer] {
  const register = (imr: number): Buffer =>
    replayRegister(log.filter((event) => event.imr === imr).map(({ digest }) => Buffer.from(digest, "hex")));
  return [register(0), register(1), register(2), register(3)];
}
