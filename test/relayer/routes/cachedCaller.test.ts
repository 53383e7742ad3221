/**
 * Reads and runs begin for the cached caller while the contract is asked for the current state. The answer is the one a
 * relayer without a cache gives, whatever changed meanwhile.
 */
import { expect } from "chai";
import type { JsonRpcProvider } from "ethers";
import { convertAccount } from "../../../client";
import { connect, fundedWallet } from "../../support/chain";
import {
  NO_PERMISSIONS,
  codeOf,
  members,
  newApiAccount,
  send,
  type Api,
  type ApiAccount,
  type HttpAnswer,
} from "../../support/http";
import { useStack } from "../../support/stack";

const HELLO = "async function main() { return 'hello'; }";

describe("a cached caller", () => {
  const stack = useStack();
  let provider: JsonRpcProvider;
  let account: ApiAccount;
  before(async () => {
    provider = connect(stack().rpcUrl);
    account = await newApiAccount(stack().baseUrl);
    await account.api.must("/add_group", { group_name: "g", group_description: "" });
    const cid = (await account.api.post("/get_lit_action_ipfs_id", HELLO)).body;
    await account.api.must("/add_action_to_group", { group_id: 1, action_ipfs_cid: cid });
  });
  after(() => provider.destroy());

  const run = (api: Api): Promise<HttpAnswer> => api.post("/run_action", { code: HELLO });
  const credit = async (): Promise<number> =>
    Number(members(await account.api.get("/billing/balance"))["balance_cents"]);

  /** A usage key that has listed and run, so that it is cached with these rights. */
  async function knownKey(rights: object): Promise<Api> {
    const { usage_api_key: key } = await account.api.must("/add_usage_api_key", {
      ...NO_PERMISSIONS,
      execute_in_groups: [1],
      ...rights,
    });
    const api = account.api.with(String(key));
    expect([(await api.get("/list_groups")).status, (await run(api)).status]).to.deep.equal([200, 200]);
    return api;
  }

  it("is refused with the next request after a revocation, and gets nothing of what had begun", async () => {
    const bot = await knownKey({});
    await account.api.must("/remove_usage_api_key", { usage_api_key: bot.key });
    const before_ = await credit();
    const list = await bot.get("/list_groups");
    expect([list.status, codeOf(list), list.headers["x-total-count"]]).to.deep.equal([401, "unknown_key", undefined]);
    const ran = await run(bot);
    expect([ran.status, codeOf(ran)]).to.deep.equal([401, "unknown_key"]);
    expect(await credit()).to.equal(before_);
  });

  it("gets the credential's error first, whatever else is wrong with the request", async () => {
    const url = `${stack().baseUrl}/core/v1/run_action`;
    for (const body of [Buffer.from("{"), { code: 1 }, {}]) {
      const bot = await knownKey({});
      await account.api.must("/remove_usage_api_key", { usage_api_key: bot.key });
      const ran = await send(url, {
        method: "POST",
        key: String(bot.key),
        headers: { "content-type": "application/json" },
        body,
      });
      expect([ran.status, codeOf(ran)]).to.deep.equal([401, "unknown_key"]);
    }
  });

  it("runs under the current cap", async () => {
    const bot = await knownKey({ balance: 0 });
    await account.api.must("/update_usage_api_key", {
      ...NO_PERMISSIONS,
      usage_api_key: bot.key,
      execute_in_groups: [1],
      balance: 1,
    });
    const ran = await run(bot);
    expect([ran.status, codeOf(ran)]).to.deep.equal([402, "key_cap_spent"]);
    await account.api.must("/update_usage_api_key", {
      ...NO_PERMISSIONS,
      usage_api_key: bot.key,
      execute_in_groups: [1],
      balance: 100,
    });
    expect((await run(bot)).status).to.equal(200);
  });

  it("is refused as a former credential once its account is converted", async () => {
    const other = await newApiAccount(stack().baseUrl);
    expect((await other.api.get("/list_groups")).status).to.equal(200);
    await convertAccount({ baseUrl: stack().baseUrl, apiKey: other.key, signer: await fundedWallet(provider) });
    const list = await other.api.get("/list_groups");
    expect([list.status, codeOf(list), list.headers["x-total-count"]]).to.deep.equal([
      403,
      "account_chain_secured",
      undefined,
    ]);
  });

  it("lists what a write that was just answered has created", async () => {
    for (let groups = 2; groups < 6; groups++) {
      await account.api.must("/add_group", { group_name: "more", group_description: "" });
      const list = await account.api.get("/list_groups");
      expect([list.headers["x-total-count"], (list.body as unknown[]).length]).to.deep.equal([String(groups), groups]);
    }
  });
});
