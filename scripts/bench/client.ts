/** Shared by the benches: a stack with raised limits, its HTTP client, and accounts made through the API. */
import { Pool } from "undici";
import { createAccount, type Client } from "../../client";
import { startStack, type Stack, type StackOptions } from "../dev/stack";
import { defined } from "../../protocol/defined";

export const RAISED_LIMITS = {
  SIGNUP_CREDIT_CENTS: "1000000",
  RATE_LIMIT_KEY_PER_SECOND: "1000000",
  RATE_LIMIT_MINTS_PER_MINUTE: "1000000",
  RATE_LIMIT_ADDRESS_PER_SECOND: "1000000",
};

export const benchStack = (options: StackOptions): Promise<Stack> =>
  startStack({ ...options, env: { ...RAISED_LIMITS, LOG_LEVEL: "warn", ...options.env } });

export interface BenchAccount {
  readonly id: string;
  readonly key: string;
}

export class BenchClient {
  readonly #pool: Pool;
  constructor(baseUrl: string, connections = 256) {
    this.#pool = new Pool(baseUrl, { connections });
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

export interface RunningAccount {
  readonly client: Client;
  readonly key: string;
  readonly pkpId: string;
}

/** An account whose one group lists a PKP and the actions with these codes. */
export async function accountRunning(baseUrl: string, codes: readonly string[]): Promise<RunningAccount> {
  const { account, client } = await createAccount({ baseUrl }, { account_name: "bench", account_description: "" });
  const { wallet_address: pkpId } = await client.createWallet({});
  const group = { group_name: "bench", group_description: "", pkp_ids_permitted: [pkpId] };
  const { group_id } = await client.addGroup(group);
  for (const code of codes)
    await client.addActionToGroup({ group_id, action_ipfs_cid: await client.getActionIpfsId(code) });
  return { client, key: account.api_key, pkpId };
}

/** One call of a node. */
export async function rpc(node: Pool, method: string, params: readonly unknown[]): Promise<void> {
  const { body } = await node.request({
    path: "/",
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const { error } = (await body.json()) as { error?: { message: string } };
  if (error !== undefined) throw new Error(error.message);
}
