/** The event log: parsed within bounds, and trusted only after its replay matches the registers. */
import { z } from "zod";
import {
  replayRegister,
  RUNTIME_EVENT_TYPE,
  RUNTIME_REGISTER,
  runtimeEventDigest,
  runtimeEventDigestJson,
} from "../../protocol/attestation";
import { jsonOf, Malformed } from "./types";

export const MAX_LOG_CHARS = 4 * 1024 * 1024;
export const MAX_EVENTS = 4096;
const REGISTERS = 4;

const hex = (maxBytes: number): z.ZodString =>
  z
    .string()
    .max(2 * maxBytes)
    .regex(/^([0-9a-fA-F]{2})*$/);
const eventSchema = z.object({
  imr: z
    .int()
    .min(0)
    .max(REGISTERS - 1),
  event_type: z.int().min(0).max(0xffffffff),
  digest: hex(48).refine((text) => text.length === 0 || text.length === 96),
  event: z.string().max(1024),
  event_payload: hex(256 * 1024),
});
const logSchema = z.array(eventSchema).max(MAX_EVENTS);
export type LogEvent = z.infer<typeof eventSchema>;

/** `log` is the JSON text of a quote's `event_log`. Throws Malformed. */
export function parseEventLog(log: unknown): LogEvent[] {
  if (typeof log !== "string") throw new Malformed("the event log is not a string");
  if (log.length > MAX_LOG_CHARS) throw new Malformed(`the event log is longer than ${MAX_LOG_CHARS} characters`);
  const parsed = logSchema.safeParse(jsonOf(log, "the event log"));
  if (parsed.success) return unambiguous(parsed.data);
  const issue = parsed.error.issues[0];
  throw new Malformed(
    `the event log has the wrong form at ${issue?.path.join(".") || "its top"}: ${issue?.message ?? "unknown reason"}`,
  );
}

/**
 * dstack extends register 3 with run-time events only, so each of its digests covers a name and a payload. A log that
 * shows one as an event of another type hides the name. The digest's text form ends the name at its first colon: with a
 * colon in a name, an event could be shown under another name with a part of its payload.
 */
function unambiguous(log: LogEvent[]): LogEvent[] {
  for (const { imr, event_type: type, event } of log) {
    if (imr !== RUNTIME_REGISTER) continue;
    if (type !== RUNTIME_EVENT_TYPE)
      throw new Malformed(
        `the event log has an event of type ${type} in register 3, where only run-time events belong`,
      );
    if (event.includes(":"))
      throw new Malformed(
        `the event log has an event "${event}" in register 3: no run-time event has a colon in its name`,
      );
  }
  return log;
}

/** A run-time event of register 3 whose digest covers its name and payload. */
export interface RuntimeEvent {
  readonly name: string;
  readonly payload: Buffer;
}

export interface ReplayedLog {
  /** Registers 0 to 3 as replayed from the log; undefined where the log has no event for one. */
  readonly registers: readonly (Buffer | undefined)[];
  /** All of register 3, in order; names and payloads match the digests. */
  readonly runtimeEvents: readonly RuntimeEvent[];
}

type DigestForm = (name: string, payload: Buffer) => Buffer;
const FORMS: readonly DigestForm[] = [runtimeEventDigest, runtimeEventDigestJson];

/**
 * Replays a log against the registers of a quote. The digest of a run-time event is always computed here from its name
 * and payload, in whichever of the two forms yields register 3; a digest stated in the log must equal it. Throws
 * Malformed naming the register that does not match.
 */
export function replayAgainst(log: readonly LogEvent[], quoted: readonly Buffer[]): ReplayedLog {
  const replays = FORMS.map((form) => replay(log, form));
  const found = replays.find(({ registers }) => same(registers[RUNTIME_REGISTER], quoted[RUNTIME_REGISTER]));
  if (found === undefined)
    throw new Malformed(`register ${RUNTIME_REGISTER} of the quote differs from what the event log replays to`);
  const wrong = found.registers.findIndex(
    (register, index) => register !== undefined && !same(register, quoted[index]),
  );
  if (wrong >= 0) throw new Malformed(`register ${wrong} of the quote differs from what the event log replays to`);
  const mismatch = found.events.find(
    ({ event, digest }) => event.digest !== "" && event.digest.toLowerCase() !== digest.toString("hex"),
  );
  if (mismatch !== undefined)
    throw new Malformed(`the digest beside the event "${mismatch.event.event}" is not the digest of its contents`);
  return {
    registers: found.registers,
    runtimeEvents: found.events
      .filter(({ event }) => isRuntimeEvent(event))
      .map(({ event }) => ({ name: event.event, payload: payloadOf(event) })),
  };
}

interface Digested {
  readonly event: LogEvent;
  readonly digest: Buffer;
}

function replay(log: readonly LogEvent[], form: DigestForm): { registers: (Buffer | undefined)[]; events: Digested[] } {
  const events = log.map((event) => ({ event, digest: digestOf(event, form) }));
  const registers = Array.from({ length: REGISTERS }, (_, imr) => {
    const digests = events.filter(({ event }) => event.imr === imr).map(({ digest }) => digest);
    // Register 3 must always match the log: without an event it must be zero.
    return digests.length === 0 && imr !== RUNTIME_REGISTER ? undefined : replayRegister(digests);
  });
  return { registers, events };
}

function digestOf(event: LogEvent, form: DigestForm): Buffer {
  return isRuntimeEvent(event) ? form(event.event, payloadOf(event)) : Buffer.from(event.digest, "hex");
}

const isRuntimeEvent = (event: LogEvent): boolean => event.imr === RUNTIME_REGISTER;
const payloadOf = (event: LogEvent): Buffer => Buffer.from(event.event_payload, "hex");
const same = (one: Buffer | undefined, other: Buffer | undefined): boolean =>
  one !== undefined && other !== undefined && one.equals(other);

/**
 * The payload of the one event of this name. An application can add events of any name after boot, so a duplicate is
 * ambiguous and rejected.
 */
export function singleEvent(events: readonly RuntimeEvent[], name: string): Buffer {
  const found = events.filter((event) => event.name === name);
  const [event] = found;
  if (event === undefined || found.length > 1)
    throw new Malformed(`the event log has ${found.length} events "${name}", not one`);
  return event.payload;
}
