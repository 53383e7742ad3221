/** Hostile and honest accounts of the abuse bench, each with a group, a PKP and the actions it runs. */
import { Pool } from "undici";
import { createAccount } from "../../../client";

export interface AbuseAccount {
  readonly apiKey: string;
  readonly pkpId: string;
}

export interface RunEnd {
  readonly ms: number;
  readonly status: number;
  /** The code of the run's error, `none` without one; the code of the refusal when the status is not 200. */
  readonly end: string;
  readonly costCents: number;
}

export async function setUpAccount(baseUrl: string, codes: readonly string[]): Promise<AbuseAccount> {
  const { account, client } = await createAccount({ baseUrl }, { account_name: "abuse", account_description: "" });
  const { wallet_address: pkpId } = await client.createWallet({});
  const { group_id } = await client.addGroup({
    group_name: "abuse",
    group_description: "",
    pkp_ids_permitted: [pkpId],
  });
  for (const code of codes)
    await client.addActionToGroup({ group_id, action_ipfs_cid: await client.getActionIpfsId(code) });
  return { apiKey: account.api_key, pkpId };
}

/** One caller with its own connection. */
export class AbuseCaller {
  readonly #pool: Pool;
  readonly #account: AbuseAccount;

  constructor(baseUrl: string, account: AbuseAccount) {
    this.#account = account;
    this.#pool = new Pool(baseUrl, { connections: 1, headersTimeout: 120_000 });
  }

  async run(code: string, timeoutMs: number): Promise<RunEnd> {
    const { apiKey, pkpId } = this.#account;
    const start = performance.now();
    const { statusCode, body } = await this.#pool.request({
      method: "POST",
      path: "/core/v1/run_action",
      headers: { "content-type": "application/json", "x-api-key": apiKey },
      body: JSON.stringify({ code, js_params: { pkpId, name: "bench" }, timeout_ms: timeoutMs }),
    });
    const answer = (await body.json()) as { error?: { code: string }; code?: string; usage?: { cost_cents: number } };
    const end = statusCode === 200 ? (answer.error?.code ?? "none") : (answer.code ?? "refused");
    return { ms: performance.now() - start, status: statusCode, end, costCents: answer.usage?.cost_cents ?? 0 };
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}
