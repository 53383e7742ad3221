/** Shared by the benches: a stack with raised limits, its HTTP client, and accounts made through the API. */
import { Pool } from "undici";
import { startStack, type Stack, type StackOptions } from "../../dev/stack";
import { defined } from "../../../protocol/defined";

export const benchStack = (options: StackOptions): Promise<Stack> =>
  startStack({
    ...options,
    env: {
      RATE_LIMIT_MINTS_PER_MINUTE: "1000000",
      RATE_LIMIT_ADDRESS_PER_SECOND: "1000000",
      RATE_LIMIT_KEY_PER_SECOND: "1000000",
      SIGNUP_CREDIT_CENTS: "1000000",
      LOG_LEVEL: "warn",
      ...options.env,
    },
  });

export interface BenchAccount {
  readonly id: string;
  readonly key: string;
}

export class BenchClient {
  readonly #pool: Pool;
  constructor(baseUrl: string) {
    this.#pool = new Pool(baseUrl, { connections: 256 });
  }

  async post(route: string, body: object, key?: string): Promise<{ status: number; answer: Record<string, unknown> }> {
    const headers = { "content-type": "application/json", ...defined({ "x-api-key": key }) };
    const { statusCode, body: stream } = await this.#pool.request({
      path: `/core/v1/${route}`,
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    return { status: statusCode, answer: (await stream.json()) as Record<string, unknown> };
  }

  async get(route: string, key: string): Promise<unknown> {
    const { body } = await this.#pool.request({
      path: `/core/v1/${route}`,
      method: "GET",
      headers: { "x-api-key": key },
    });
    return body.json();
  }

  async account(): Promise<BenchAccount> {
    const { status, answer } = await this.post("new_account", { account_name: "bench", account_description: "" });
    if (status !== 200) throw new Error(`new_account answered ${status}: ${JSON.stringify(answer)}`);
    return { id: String(answer.api_key_hash), key: String(answer.api_key) };
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

export const rounded = (value: number, digits = 1): number => Number(value.toFixed(digits));
