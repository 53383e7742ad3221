/**
 * Canaries in every client input, then a search of every sink: logs of both services at their lowest level, metrics,
 * error bodies, the database's files.
 */
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomBytes, randomUUID } from "node:crypto";
import { expect } from "chai";
import { Wallet } from "ethers";
import { startStack, type Stack } from "../../../scripts/dev/stack";
import { buildTypedData } from "../../../protocol/typedData";
import type { Address } from "../../../protocol/ids";
import { Api, NO_PERMISSIONS, members, newApiAccount, send } from "../../support/http";

const canary = (what: string): string => `canary-${what}-${randomBytes(12).toString("hex")}`;

describe("secrets", function () {
  this.timeout(120_000);
  let stack: Stack;
  let dataDir: string;
  const log: string[] = [];
  /** Must be in no sink, by name. */
  const secrets = new Map<string, string>();
  /** May be in the database only. */
  const stored = new Map<string, string>();

  before(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "secrets-"));
    stack = await startStack({
      dataDir,
      env: { LOG_LEVEL: "trace" },
      onLog: (service, line) => log.push(`${service} ${line}`),
    });
  });
  after(async () => {
    await stack?.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const note = (name: string, value: unknown): void => {
    secrets.set(name, String(value));
  };

  it("are sent in every field, header and wrong place", async () => {
    const account = await newApiAccount(stack.baseUrl);
    const stranger = new Api(stack.baseUrl);
    note("account key", account.key);
    note("account key in hex", Buffer.from(account.key, "base64").toString("hex"));
    const email = `${canary("mail")}@example.com`;
    stored.set("e-mail", email);
    await stranger.must("/new_account", { account_name: "n", account_description: "", email });
    const badMail = canary("bad-mail");
    note("bad e-mail", badMail);
    await stranger.post("/new_account", { account_name: "n", account_description: "", email: badMail });

    const made = await account.api.must("/add_usage_api_key", { ...NO_PERMISSIONS, execute_in_groups: [0] });
    note("usage key", made["usage_api_key"]);
    await account.api.post("/update_usage_api_key_metadata", {
      usage_api_key: made["usage_api_key"],
      name: "renamed",
      description: "",
    });
    await account.api.must("/remove_usage_api_key", { usage_api_key: made["usage_api_key"] });

    const [param, source, output, logged] = [canary("param"), canary("code"), canary("response"), canary("guest-log")];
    for (const [name, value] of Object.entries({ param, source, output, logged })) note(name, value);
    const code =
      `/* ${source} */ async function main({ p }) { console.log("${logged}"); if (p === ` +
      `"throw") throw new ` +
      `Error("${output}"); return "${output}"; }`;
    await account.api.must("/add_group", { group_name: "g", group_description: "" });
    const cid = (await account.api.post("/get_lit_action_ipfs_id", code)).body;
    await account.api.must("/add_action_to_group", { group_id: 1, action_ipfs_cid: cid });
    for (const p of [param, "throw"]) {
      const ran = await account.api.post(
        "/run_action",
        { code, js_params: { p } },
        { headers: { "idempotency-key": randomUUID() } },
      );
      expect(ran.text).to.include(output);
    }
    await account.api.post("/run_action", { code: `${source}(((`, js_params: { p: param } });
    await account.api.post("/run_action", { code: source, js_params: param });

    for (const header of [
      "authorization",
      "x-api-key",
      "x-identity-token",
      "x-wallet-auth",
      "x-account",
      "idempotency-key",
      "x-custom",
      "cookie",
    ]) {
      const value = canary(header);
      note(`header ${header}`, value);
      await stranger.post(
        "/add_group",
        { group_name: "g", group_description: "" },
        { headers: { [header]: header === "authorization" ? `Bearer ${value}` : value } },
      );
      await stranger.get("/billing/balance", { headers: { [header]: value } });
    }
    const [inJson, inField, inQuery] = [canary("json"), canary("field"), canary("query")];
    for (const [name, value] of Object.entries({ inJson, inField, inQuery })) note(name, value);
    await account.api.post("/add_group", Buffer.from(`{"group_name": "${inJson}`));
    await account.api.post("/remove_group", { group_id: inField, [inField]: 1 });
    await account.api.get(`/list_groups?page_size=${inQuery}`);
    await stranger.get(`/nowhere/${inQuery}`);

    const wallet = Wallet.createRandom();
    const config = members(await account.api.get("/get_node_chain_config"));
    const { name, chainId } = config["typed_data_domain"] as { name: string; chainId: string };
    const envelope = buildTypedData(
      "AddUsageApiKey",
      { name, version: "1", chainId: BigInt(chainId) },
      wallet.address as Address,
      Math.floor(Date.now() / 1000),
    );
    const { EIP712Domain: _, ...types } = envelope.types;
    const signature = await wallet.signTypedData(
      envelope.domain,
      types as Record<string, { name: string; type: string }[]>,
      envelope.message,
    );
    note("signature", signature);
    const minted = await stranger.must("/add_usage_api_key_with_signature", { typed_data: envelope, signature });
    note("minted key", minted["usage_api_key"]);

    const intent = await account.api.must("/billing/create_payment_intent", { amount_cents: 500 });
    note("client secret", intent["client_secret"]);
    note("Stripe's secret key", "sk_test_development");
    note("the webhook's secret", "whsec_development");
    await send(`${stack.baseUrl}/core/v1/billing/webhook`, {
      method: "POST",
      body: { secret: inJson },
      headers: { "stripe-signature": inField },
    });
  });

  const found = (text: string, names: ReadonlyMap<string, string>): string[] =>
    [...names].filter(([, value]) => text.includes(value)).map(([name]) => name);

  it("are in no log line", () => {
    expect(log.length, "the services did log").to.be.above(50);
    const all = log.join("\n");
    expect(all).to.include('"audit":true');
    expect(found(all, secrets)).to.deep.equal([]);
    expect(found(all, stored)).to.deep.equal([]);
  });

  it("are not in the metrics", async () => {
    const { text } = await send(stack.metricsUrl);
    expect(text).to.include("relayer_request_seconds");
    expect(found(text, secrets)).to.deep.equal([]);
  });

  it("are in no file of the services, except the e-mail in the database", async () => {
    await stack.stop();
    const relayer = filesBelow(join(dataDir, "relayer"));
    const kept = relayer.map((file) => readFileSync(file).toString("latin1")).join("\n");
    expect(relayer.length).to.be.above(10);
    // Code is public and stored by its CID, in the store that machines share and by the executor.
    const { source: _, output: __, logged: ___, ...rest } = Object.fromEntries(secrets);
    expect(found(kept, new Map(Object.entries(rest)))).to.deep.equal([]);
    expect(found(kept, stored), "the test would find what is there").to.deep.equal(["e-mail"]);
    const executor = filesBelow(join(dataDir, "executor")).map((file) => readFileSync(file).toString("latin1"));
    expect(found(executor.join("\n"), new Map(Object.entries(rest)))).to.deep.equal([]);
  });
});

function filesBelow(folder: string): string[] {
  try {
    return readdirSync(folder).flatMap((entry) => {
      const path = join(folder, entry);
      return statSync(path).isDirectory() ? filesBelow(path) : [path];
    });
  } catch {
    return [];
  }
}
