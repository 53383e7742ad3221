/** Hostile and honest accounts of the abuse bench, each with a group, a PKP and an address of its own. */
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";

export interface AbuseAccount {
  /** Unset: a stranger. */
  readonly apiKey: string | undefined;
  readonly pkpId: string;
  /** As which it reaches the relayer. */
  readonly address: string;
}

export interface RunEnd {
  readonly ms: number;
  readonly status: number;
  /** The code of the run's error, `none` without one; the code of the refusal when the status is not 200. */
  readonly end: string;
  readonly costCents: number;
}

interface SendOptions {
  readonly signal?: AbortSignal;
  /** In bytes, of a body that is a stream. */
  readonly length?: number;
  readonly idempotencyKey?: string;
}

interface Answer {
  readonly error?: { readonly code: string };
  readonly code?: string;
  readonly usage?: { readonly cost_cents: number };
  readonly api_key?: string;
  readonly wallet_address?: string;
  readonly balance_cents?: number;
  readonly reserved_cents?: number;
}

const ANY_ACTION = `0x${"00".repeat(32)}`;
const NOBODY = { apiKey: undefined, pkpId: "" };

/** Sends requests as any account, each from its address. */
export class Caller {
  readonly #pool: Pool;

  constructor(baseUrl: string, connections: number) {
    this.#pool = new Pool(baseUrl, { connections, headersTimeout: 150_000, bodyTimeout: 150_000 });
  }

  run(account: AbuseAccount, code: string, { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal }) {
    const body = JSON.stringify({ code, js_params: { pkpId: account.pkpId, name: "bench" }, timeout_ms: timeoutMs });
    return this.send(account, "/run_action", body, signal === undefined ? {} : { signal });
  }

  async send(account: AbuseAccount, path: string, body: string | Readable, options: SendOptions = {}): Promise<RunEnd> {
    const start = performance.now();
    const { status, answer } = await this.#request(account, path, body, options);
    const end = status === 200 ? (answer.error?.code ?? "none") : (answer.code ?? "refused");
    return { ms: performance.now() - start, status, end, costCents: answer.usage?.cost_cents ?? 0 };
  }

  /** A new account whose group lists its PKP and any action. */
  async signUp(address: string): Promise<AbuseAccount> {
    const name = { account_name: "abuse", account_description: "" };
    const { api_key: apiKey } = await this.#ask({ ...NOBODY, address }, "/new_account", name);
    const account = { apiKey, pkpId: "", address };
    const { wallet_address: pkpId = "" } = await this.#ask(account, "/create_wallet", {});
    const group = { group_name: "abuse", group_description: "" };
    await this.#ask(account, "/add_group", {
      ...group,
      pkp_ids_permitted: [pkpId],
      cid_hashes_permitted: [ANY_ACTION],
    });
    return { ...account, pkpId };
  }

  /** What the account has, once all that it began has ended. */
  async credit(account: AbuseAccount): Promise<number> {
    for (;;) {
      const { balance_cents: cents = 0, reserved_cents: held = 0 } = await this.#ask(account, "/billing/balance");
      if (held === 0) return cents;
      await sleep(500);
    }
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }

  async #ask(account: AbuseAccount, path: string, body?: object): Promise<Answer> {
    const { status, answer } = await this.#request(account, path, body && JSON.stringify(body), {});
    if (status !== 200) throw new Error(`${path} answered ${status}: ${JSON.stringify(answer)}`);
    return answer;
  }

  async #request(
    { apiKey, address }: Pick<AbuseAccount, "apiKey" | "address">,
    path: string,
    sent: string | Readable | undefined,
    { signal, length, idempotencyKey }: SendOptions,
  ): Promise<{ status: number; answer: Answer }> {
    const { statusCode: status, body } = await this.#pool.request({
      method: sent === undefined ? "GET" : "POST",
      path: `/core/v1${path}`,
      headers: {
        "content-type": "application/json",
        "x-forwarded-for": address,
        ...(apiKey === undefined ? {} : { "x-api-key": apiKey }),
        ...(length === undefined ? {} : { "content-length": String(length) }),
        ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
      },
      ...(sent === undefined ? {} : { body: sent }),
      ...(signal === undefined ? {} : { signal }),
    });
    return { status, answer: (await body.json()) as Answer };
  }
}
