/**
 * Talks to the guest agent through dstack's SDK. A separate process because the SDK (0.5.8) reads answers of any size
 * into memory, waits up to 30 s for them and turns the root key into a hex string: the first two then end only this
 * process, and the string is gone when it exits.
 * One message in ({id, call, …}), one out; the parent sets the deadline and the heap limit.
 */
import { DstackClient } from "@phala/dstack-sdk";

/** Maximum size of an answer as JSON text. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

export type AgentCall =
  { call: "key"; path: string; purpose: string } | { call: "quote"; reportData: Uint8Array } | { call: "info" };
export type AgentRequest = AgentCall & { id: number; endpoint: string };
export type AgentAnswer =
  | { id: number; ok: true; value: unknown }
  | { id: number; ok: false; reason: "unreachable" | "too_large" | "malformed"; message: string };

async function ask(request: AgentRequest): Promise<unknown> {
  const client = new DstackClient(request.endpoint);
  if (request.call === "key") return { key: (await client.getKey(request.path, request.purpose)).key };
  if (request.call === "info") return capped(await client.info());
  const { quote, event_log, vm_config } = await client.getQuote(request.reportData);
  return capped({ quote, event_log, vm_config });
}

class TooLarge extends Error {}

function capped<T>(answer: T): T {
  if (Buffer.byteLength(JSON.stringify(answer)) > MAX_ANSWER_BYTES)
    throw new TooLarge(`the answer is larger than ${MAX_ANSWER_BYTES} bytes`);
  return answer;
}

function failureOf(error: unknown): { reason: "unreachable" | "too_large" | "malformed"; message: string } {
  if (error instanceof TooLarge) return { reason: "too_large", message: error.message };
  const message = error instanceof Error ? error.message.slice(0, 300) : "unknown failure";
  const unreachable = error instanceof Error && ("code" in error || message.includes("does not exist"));
  return { reason: unreachable ? "unreachable" : "malformed", message };
}

process.on("message", (request: AgentRequest) => {
  ask(request).then(
    (value) => process.send?.({ id: request.id, ok: true, value } satisfies AgentAnswer),
    (error: unknown) => process.send?.({ id: request.id, ok: false, ...failureOf(error) } satisfies AgentAnswer),
  );
});
// The parent is gone.
process.on("disconnect", () => process.exit(0));
