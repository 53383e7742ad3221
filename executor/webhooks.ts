/**
 * Messages to webhooks: composed and signed here, so that what the statement key signs for them always has their form,
 * and sent by the fetcher, to public addresses only. The relayer decides what is told; the signature says that this
 * service told it.
 */
import { KeywrightError } from "../protocol/errors";
import type { ExecutorAnswer } from "../protocol/executor";
import type { SignedWebhook, WebhookMessage } from "../protocol/webhookCalls";
import { WEBHOOK_LIMITS } from "../protocol/limits";
import {
  WEBHOOK_ID_HEADER,
  WEBHOOK_SIGNATURE_HEADER,
  WEBHOOK_SIGNATURE_VERSION,
  WEBHOOK_TIMESTAMP_HEADER,
  webhookBody,
  webhookSignedText,
} from "../protocol/webhooks";
import { FetchFailed, type GuestResponse, type WebhookFetcher } from "./fetcher/types";
import type { StatementKey } from "./keys/statementKey";

const { timeoutMs, bodyBytes, answerBytes } = WEBHOOK_LIMITS;
const USER_AGENT = "Keywright-Webhooks/1";

export class Webhooks {
  readonly #statementKey: StatementKey;
  readonly #fetcher: WebhookFetcher;

  constructor(statementKey: StatementKey, fetcher: WebhookFetcher) {
    this.#statementKey = statementKey;
    this.#fetcher = fetcher;
  }

  /** @throws KeywrightError `payload_too_large`. */
  sign(message: WebhookMessage): SignedWebhook {
    const body = webhookBody(message);
    if (Buffer.byteLength(body) > bodyBytes)
      throw new KeywrightError("payload_too_large", `A message to a webhook has at most ${bodyBytes} bytes.`);
    const timestamp = Math.floor(Date.now() / 1_000);
    const signature = this.#statementKey.sign(Buffer.from(webhookSignedText(message.id, timestamp, body), "utf8"));
    return { timestamp, body, signature: `${WEBHOOK_SIGNATURE_VERSION},${signature.toString("base64")}` };
  }

  /** @throws KeywrightError `payload_too_large`; `executor_unavailable` when nothing can be sent to anybody. */
  async send(url: string, message: WebhookMessage, signal: AbortSignal): Promise<ExecutorAnswer<"sendWebhook">> {
    const { timestamp, body, signature } = this.sign(message);
    const headers: [string, string][] = [
      ["content-type", "application/json"],
      ["user-agent", USER_AGENT],
      [WEBHOOK_ID_HEADER, message.id],
      [WEBHOOK_TIMESTAMP_HEADER, String(timestamp)],
      [WEBHOOK_SIGNATURE_HEADER, signature],
    ];
    const request = { url, method: "POST", headers, redirect: "manual", timeoutMs, maxBytes: answerBytes } as const;
    const startedAt = performance.now();
    const outcome = await this.#fetcher
      .fetchWebhook(request, Buffer.from(body, "utf8"), signal)
      .then(answered, (error: unknown) => ({ failure: reasonOf(error) }));
    return { durationMs: Math.round(performance.now() - startedAt), ...outcome };
  }

  /** @throws KeywrightError `executor_unavailable`. */
  async check(url: string): Promise<ExecutorAnswer<"checkWebhook">> {
    return this.#fetcher.checkWebhook(url).then(
      () => ({}),
      (error: unknown) => ({ problem: reasonOf(error) }),
    );
  }
}

const answered = ({
  response,
  body,
}: {
  response: GuestResponse;
  body: Buffer;
}): { status: number; answer: string } => ({
  status: response.status,
  answer: body.subarray(0, answerBytes).toString("utf8"),
});

/** Why a receiver was not reached. @throws what is not the receiver's doing: nothing is known of it then. */
function reasonOf(error: unknown): string {
  if (!(error instanceof FetchFailed)) throw error;
  if (error.code === "unavailable") throw new KeywrightError("executor_unavailable", error.message);
  return error.message;
}
