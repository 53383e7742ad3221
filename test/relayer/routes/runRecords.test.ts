/** `list_runs` and `usage`: the stored records of runs, for their account only. */
import { expect } from "chai";
import { NO_PERMISSIONS, codeOf, members, newApiAccount, type ApiAccount, type HttpAnswer } from "../../support/http";
import { useStack } from "../../support/stack";

const SIGN = "async function main({ pkpId }) { return Actions.signMessage({ pkpId, message: 'secret words' }); }";
const THROW = "async function main() { console.log('secret words'); throw new Error('no such pair'); }";
const ODD = "async function main() { throw new Error('\\0\\ud800' + 'x'.repeat(9000)); }";

describe("records of runs over HTTP", function () {
  this.timeout(60_000);
  const stack = useStack();
  let account: ApiAccount;
  let pkp: string;
  let usageKey: Record<string, unknown>;
  let signed: HttpAnswer;
  const rows = (answer: HttpAnswer): Record<string, unknown>[] => answer.body as Record<string, unknown>[];

  before(async () => {
    account = await newApiAccount(stack().baseUrl);
    pkp = String((await account.api.must("/create_wallet", {}))["wallet_address"]);
    await account.api.must("/add_group", { group_name: "g", group_description: "", pkp_ids_permitted: [1] });
    const cids = await Promise.all(
      [SIGN, THROW, ODD].map(async (code) => (await account.api.post("/get_lit_action_ipfs_id", code)).body),
    );
    await account.api.must("/groups/1/actions", { add: cids });
    usageKey = await account.api.must("/add_usage_api_key", { ...NO_PERMISSIONS, execute_in_groups: [1] });
    signed = await account.api
      .with(String(usageKey["usage_api_key"]))
      .post("/run_action", { code: SIGN, js_params: { pkpId: pkp } });
    expect(members(signed)["has_error"], signed.text).to.equal(false);
    await account.api.must("/run_action", { code: THROW });
  });

  it("list the account's runs, newest first, with the PKPs used", async () => {
    const listed = await account.api.get("/list_runs");
    expect(listed.status, listed.text).to.equal(200);
    expect(listed.headers["x-total-count"]).to.equal("2");
    const [thrown, succeeded] = rows(listed);
    expect(thrown).to.include({ outcome: "threw", api_key_hash: account.id, cost_cents: 1 });
    expect(thrown?.["pkps_used"]).to.deep.equal([]);
    expect(succeeded).to.include({
      outcome: "succeeded",
      api_key_hash: usageKey["api_key_hash"],
      request_id: signed.headers["x-request-id"],
    });
    expect(succeeded?.["pkps_used"]).to.deep.equal([pkp]);
    expect(succeeded?.["duration_ms"]).to.equal((members(signed)["usage"] as Record<string, unknown>)["duration_ms"]);
    expect(Number(succeeded?.["started_at"])).to.be.within(Date.now() / 1000 - 60, Date.now() / 1000);
    expect(listed.text).to.not.include("secret words");
  });

  it("are filtered by key, action and outcome, and paged", async () => {
    const find = async (query: string): Promise<[number, unknown]> => {
      const answer = await account.api.get(`/list_runs?${query}`);
      return [rows(answer).length, answer.headers["x-total-count"]];
    };
    const [thrown] = rows(await account.api.get("/list_runs"));
    expect(await find(`api_key_hash=${String(usageKey["api_key_hash"])}`)).to.deep.equal([1, "1"]);
    expect(await find("outcome=threw")).to.deep.equal([1, "1"]);
    expect(await find("outcome=timed_out")).to.deep.equal([0, "0"]);
    expect(await find(`action_ipfs_cid=${String(thrown?.["action_ipfs_cid"])}`)).to.deep.equal([1, "1"]);
    expect(await find(`hashed_cid=0x${"ab".repeat(32)}`)).to.deep.equal([0, "0"]);
    expect(await find("page_number=1&page_size=1")).to.deep.equal([1, "2"]);
    expect(await find("page_number=18446744073709551615")).to.deep.equal([0, "2"]);
    for (const query of [
      "outcome=fine",
      "api_key_hash=1",
      `hashed_cid=0x${"ab".repeat(32)}&action_ipfs_cid=${String(thrown?.["action_ipfs_cid"])}`,
    ]) {
      expect(codeOf(await account.api.get(`/list_runs?${query}`)), query).to.be.oneOf(["invalid_value", "invalid_cid"]);
    }
  });

  it("are summed by day and key", async () => {
    const today = new Date().toISOString().slice(0, 10);
    const days = rows(await account.api.get("/usage"));
    expect(days.map(({ api_key_hash, runs, failed }) => [api_key_hash, runs, failed])).to.have.deep.members([
      [account.id, 1, 1],
      [usageKey["api_key_hash"], 1, 0],
    ]);
    expect(rows(await account.api.get(`/usage?from=${today}&to=${today}`))).to.have.lengthOf(2);
    expect(rows(await account.api.get("/usage?from=2020-01-01&to=2020-12-31"))).to.deep.equal([]);
    for (const query of ["from=yesterday", "to=2026-02-30", "from=0001-01-01"]) {
      expect(codeOf(await account.api.get(`/usage?${query}`)), query).to.equal("invalid_value");
    }
  });

  it("are shown to any live key of the account only", async () => {
    const other = await newApiAccount(stack().baseUrl);
    expect(rows(await account.api.with(String(usageKey["usage_api_key"])).get("/list_runs"))).to.have.lengthOf(2);
    expect(rows(await other.api.get("/list_runs"))).to.deep.equal([]);
    expect(rows(await other.api.get(`/list_runs?api_key_hash=${account.id}`))).to.deep.equal([]);
    expect(rows(await other.api.get("/usage"))).to.deep.equal([]);
    expect((await account.api.with(undefined).get("/list_runs")).status).to.equal(401);
  });

  it("have the message of a failed run, for the owner and the key that ran", async () => {
    const key = account.api.with(String(usageKey["usage_api_key"]));
    const messages = async (reader: typeof key): Promise<unknown[]> =>
      rows(await reader.get("/list_runs?outcome=threw")).map((run) => run["error_message"]);
    expect(await messages(account.api)).to.deep.equal(["no such pair"]);
    expect(await messages(key), "another key's message").to.deep.equal([undefined]);
    expect(members(await key.post("/run_action", { code: THROW }))["has_error"]).to.equal(true);
    expect(await messages(key)).to.deep.equal(["no such pair", undefined]);
  });

  it("bound a message, and store one that no column could hold as it is", async () => {
    expect(members(await account.api.post("/run_action", { code: ODD }))["has_error"]).to.equal(true);
    const [run] = rows(await account.api.get("/list_runs"));
    expect(run).to.include({ outcome: "threw", cost_cents: 1 });
    expect(run?.["error_message"]).to.equal(`\ufffd\ufffd${"x".repeat(498)}`);
  });
});
