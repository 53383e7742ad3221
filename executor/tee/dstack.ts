/**
 * dstack as the source of root key, quotes and info. Every answer is validated; a bad one is a typed error, never a
 * crash.
 */
import { z } from "zod";
import { REPORT_DATA_BYTES } from "../../protocol/attestation";
import { KeywrightError } from "../../protocol/errors";
import { parseJson } from "../../protocol/json";
import { AgentProcess } from "./agentProcess";
import { TeeError, type TeeQuote, type TeeSource } from "./types";

/**
 * dstack separates keys by path only (not by purpose or algorithm): the root key is taken under this one path, all
 * others are derived from it here.
 */
const ROOT_KEY_PATH = "keywright/root/v1";
const ROOT_KEY_PURPOSE = "root";
const ROOT_KEY_BYTES = 32;
const MAX_QUOTE_HEX = 64 * 1024;
const MAX_EVENT_LOG_CHARS = 1024 * 1024;

const hex = z.string().regex(/^([0-9a-fA-F]{2})+$/);
const isJson = (text: string): boolean => parseJson(text) !== undefined;
const jsonText = z.string().max(MAX_EVENT_LOG_CHARS).refine(isJson, "not JSON");

const keyAnswer = z.object({ key: z.instanceof(Uint8Array).refine(isRootKey, "not 32 bytes of key") });
const quoteAnswer = z.object({
  quote: hex.max(MAX_QUOTE_HEX),
  event_log: jsonText,
  vm_config: z.string().max(MAX_EVENT_LOG_CHARS).default(""),
});
const infoAnswer = z.looseObject({
  app_id: hex,
  instance_id: hex,
  compose_hash: hex,
  tcb_info: z.looseObject({
    app_compose: z.string(),
    mrtd: hex,
    rtmr0: hex,
    rtmr1: hex,
    rtmr2: hex,
    rtmr3: hex,
    event_log: z.array(z.looseObject({})),
  }),
});

export interface DstackOptions {
  /** Path of the guest agent's Unix socket, or its http(s) address. */
  endpoint: string;
  timeoutMs?: number;
}

const DEFAULT_TIMEOUT_MS = 10_000;
const KEPT_MS = 10_000;

export class DstackSource implements TeeSource {
  readonly #agent: AgentProcess;
  /** The VM's facts do not change while it runs. */
  readonly info = keptFor(KEPT_MS, () => this.#askInfo());
  readonly #quoteOfNothing = keptFor(KEPT_MS, () => this.#askQuote(Buffer.alloc(REPORT_DATA_BYTES)));

  constructor(
    readonly kind: "dstack" | "simulated",
    options: DstackOptions,
  ) {
    this.#agent = new AgentProcess({ endpoint: options.endpoint, timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS });
  }

  async rootKey(): Promise<Buffer> {
    try {
      const { key } = checked(
        keyAnswer,
        "key",
        await this.#agent.call({ call: "key", path: ROOT_KEY_PATH, purpose: ROOT_KEY_PURPOSE }),
      );
      // A separate buffer: Buffer.from would leave a copy in its pool after zero-filling.
      const root = Buffer.alloc(ROOT_KEY_BYTES, key);
      key.fill(0);
      return root;
    } finally {
      // That process has held the key as a string, so it ends with this call.
      this.#agent.end();
    }
  }

  /** Cached briefly where the report data is zero: such a quote answers nobody's question. */
  async quote(reportData: Buffer): Promise<TeeQuote> {
    if (reportData.length !== REPORT_DATA_BYTES) throw new RangeError("report data has 64 bytes");
    return reportData.some((byte) => byte !== 0) ? this.#askQuote(reportData) : this.#quoteOfNothing();
  }

  #askQuote(reportData: Buffer): Promise<TeeQuote> {
    return unavailableUnless(async () => {
      const answer = checked(quoteAnswer, "quote", await this.#agent.call({ call: "quote", reportData }));
      if (!answer.quote.toLowerCase().includes(reportData.toString("hex")))
        throw new TeeError("malformed", "quote: the quote does not carry the report data");
      return answer;
    });
  }

  #askInfo(): Promise<Record<string, unknown>> {
    return unavailableUnless(async () => checked(infoAnswer, "info", await this.#agent.call({ call: "info" })));
  }

  async close(): Promise<void> {
    this.#agent.close();
  }
}

/** What is asked is shared by all who ask meanwhile, and for so long afterwards; a failure is not kept. */
function keptFor<T>(ms: number, ask: () => Promise<T>): () => Promise<T> {
  let kept: { readonly answer: Promise<T>; until: number } | undefined;
  return () => {
    if (kept !== undefined && Date.now() < kept.until) return kept.answer;
    const asked = { answer: ask(), until: Infinity };
    kept = asked;
    asked.answer.then(
      () => (asked.until = Date.now() + ms),
      () => (asked.until = 0),
    );
    return asked.answer;
  };
}

function checked<T>(schema: z.ZodType<T>, call: string, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  // Only paths and rules: the values may be secret.
  const where = parsed.error.issues.slice(0, 3).map((issue) => `${issue.path.join(".") || "answer"} (${issue.code})`);
  throw new TeeError("malformed", `${call}: ${where.join(", ")}`);
}

async function unavailableUnless<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw new KeywrightError("attestation_unavailable", "the TEE's guest agent gave no usable answer.", undefined, {
      cause: error,
      retryAfterSeconds: 5,
    });
  }
}

function isRootKey(bytes: Uint8Array): boolean {
  return bytes.length === ROOT_KEY_BYTES && bytes.some((byte) => byte !== 0);
}
