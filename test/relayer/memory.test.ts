/**
 * The relayer retains nothing of a request, however it ends: heap snapshots before and after many requests, compared by
 * class.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Wallet } from "ethers";
import { startStack, type Stack } from "../../scripts/dev/stack";
import { count } from "../support/counts";
import { leakedClasses, heapOptions } from "../support/heap";
import { Api, codeOf } from "../support/http";
import { makeAccount, makeGroup } from "../support/journey";
import { signedForward } from "../support/forwards";

const HELLO = `async function main() { return "hello"; }`;
const WAITS = `async function main() { await new Promise((resolve) => setTimeout(resolve, 500)); }`;
const GENEROUS = {
  RATE_LIMIT_ADDRESS_PER_SECOND: "1000000",
  RATE_LIMIT_STRANGERS_PER_MINUTE: "1000000",
  RATE_LIMIT_HEAVY_PER_MINUTE: "1000000",
  RATE_LIMIT_MINTS_PER_MINUTE: "1000000",
  RATE_LIMIT_KEY_PER_SECOND: "100000",
  SIGNUP_CREDIT_CENTS: "1000000",
};

describe("the relayer's memory over many requests", function () {
  this.timeout(count(180_000, 1_800_000));
  const folder = mkdtempSync(join(tmpdir(), "keywright-relayer-heap-"));
  let stack: Stack;
  let api: Api;
  let owner: Api;
  let stranger: Api;

  before(async () => {
    stack = await startStack({ env: { ...GENEROUS, LOG_LEVEL: "warn", NODE_OPTIONS: heapOptions(folder) } });
    api = new Api(stack.baseUrl);
    const account = await makeAccount(stack.baseUrl);
    const { group } = await makeGroup(account.client, HELLO);
    await account.client.addActionToGroup({
      group_id: group,
      action_ipfs_cid: await account.client.getActionIpfsId(WAITS),
    });
    owner = api.with(account.apiKey);
    stranger = api.with(randomBytes(32).toString("base64"));
  });
  after(async () => {
    await stack?.stop();
    rmSync(folder, { recursive: true });
  });

  const run = (code: string, more: object = {}) => ({ code, js_params: {}, ...more });
  async function disconnected(): Promise<string> {
    const headers = { "content-type": "application/json", "x-api-key": owner.key ?? "" };
    const asked = fetch(`${stack.baseUrl}/core/v1/run_action`, {
      method: "POST",
      headers,
      body: JSON.stringify(run(WAITS)),
      signal: AbortSignal.timeout(60),
    });
    return asked.then(
      () => "answered",
      () => "disconnected",
    );
  }
  const end = async (answer: ReturnType<Api["get"]>): Promise<unknown> =>
    answer.then((given) => codeOf(given) ?? given.status);
  /** Requests that end in the same way each time. */
  const kinds: Record<string, [unknown, () => Promise<unknown>]> = {
    "a run": [200, () => end(owner.post("/run_action", run(HELLO)))],
    "a run that times out": [200, () => end(owner.post("/run_action", run(WAITS, { timeout_ms: 20 })))],
    "a run of code in no group": [
      "action_not_permitted",
      () => end(owner.post("/run_action", run("async function main() {}"))),
    ],
    "a run whose caller disconnected": ["disconnected", disconnected],
    "a list": [200, () => end(owner.get("/list_groups"))],
    "a stranger's call": ["unknown_key", () => end(stranger.get("/list_groups"))],
    "a body that is none": ["malformed_json", () => end(owner.post("/add_group", Buffer.from("{")))],
    "a body that lacks a field": ["invalid_body", () => end(owner.post("/add_group", {}))],
    "no route": [404, async () => (await owner.get("/nothing")).status],
    "a write": [200, () => end(owner.post("/update_account", { name: "a", description: "" }))],
    "a write that is refused": ["unknown_group", () => end(owner.post("/remove_group", { group_id: "999" }))],
    "a forward request that is refused": [
      "unknown_account",
      async () =>
        end(api.post("/relay", await signedForward(api, Wallet.createRandom(), "removeGroup", [1, 1], { nonce: "0" }))),
    ],
  };
  async function round(times: number): Promise<void> {
    for (let i = 0; i < times; i++)
      for (const [what, [ends, ask]] of Object.entries(kinds)) expect(await ask(), what).to.equal(ends);
  }

  it("does not grow with requests that are served, refused, malformed, timed out or aborted", async () => {
    const times = count(25, 1_000);
    const pid = stack.service("relayer").child.pid ?? 0;
    // Caches and prepared statements fill up first.
    await round(40);
    expect(await leakedClasses({ pid, folder }, () => round(times), times)).to.deep.equal([]);
  });
});
