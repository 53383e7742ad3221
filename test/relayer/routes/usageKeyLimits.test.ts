/** Limits of usage keys over HTTP, set by owners of both kinds. */
import { expect } from "chai";
import { createChainSecuredClient, createClient, type ChainSecuredClient, type Client } from "../../../client";
import { fundedWallet } from "../../support/chain";
import { NO_RIGHTS, makeAccount, makeUsageKey, refused } from "../../support/journey";
import { useProvider, useStack } from "../../support/stack";

const HELLO = `async function main() { return "hello"; }`;
const ANYTHING = [`0x${"00".repeat(32)}`];

/** The operations that owners of both kinds have. */
interface Owner {
  readonly owner: Pick<Client | ChainSecuredClient, "setUsageKeyLimits" | "listUsageKeyLimits">;
  readonly key: string;
  readonly keyId: string;
}

describe("limits of usage keys over HTTP", function () {
  this.timeout(60_000);
  const stack = useStack();
  const provider = useProvider();

  async function inApiMode(): Promise<Owner> {
    const { client } = await makeAccount(stack().baseUrl);
    await client.addGroup({ group_name: "g", group_description: "", cid_hashes_permitted: ANYTHING });
    const { key, keyId } = await makeUsageKey(client, stack().baseUrl, { execute_in_groups: ["0"] });
    return { owner: client, key, keyId };
  }

  async function withWallet(): Promise<Owner> {
    const owner = await createChainSecuredClient({
      baseUrl: stack().baseUrl,
      signer: await fundedWallet(provider()),
    });
    await owner.createAccount({ account_name: "Self", account_description: "" });
    await owner.addGroup({ group_name: "g", group_description: "", cid_hashes_permitted: ANYTHING });
    const key = await owner.createUsageKey({ ...NO_RIGHTS, execute_in_groups: ["0"] });
    return { owner, key: key.usage_api_key, keyId: key.api_key_hash };
  }

  const run = async (key: string, origin?: string): Promise<string> => {
    const answer = await fetch(`${stack().baseUrl}/core/v1/run_action`, {
      method: "POST",
      headers: { "x-api-key": key, "content-type": "application/json", ...(origin === undefined ? {} : { origin }) },
      body: JSON.stringify({ code: HELLO, timeout_ms: 1_000 }),
    });
    const { code } = (await answer.json()) as { code?: string };
    return `${answer.status}${code === undefined ? "" : ` ${code}`}`;
  };

  for (const [mode, make] of [
    ["in API mode", inApiMode],
    ["with a wallet", withWallet],
  ] as const) {
    it(`hold for what is asked at once, are listed and lifted again: ${mode}`, async () => {
      const { owner, key, keyId } = await make();
      const limits = { cents_per_day: 3, runs_per_minute: 0, origins: ["https://app.example"] };
      await owner.setUsageKeyLimits({ usage_api_key: keyId, ...limits });
      expect(await run(key, "https://evil.example")).to.equal("403 origin_not_allowed");
      const runs = await Promise.all(Array.from({ length: 8 }, () => run(key, "https://app.example")));
      expect(runs.sort()).to.deep.equal([
        ...Array<string>(3).fill("200"),
        ...Array<string>(5).fill("402 key_day_spent"),
      ]);
      expect((await owner.listUsageKeyLimits({})).items).to.deep.equal([
        { api_key_hash: keyId, ...limits, cents_used: 3, runs_used: 3 },
      ]);
      await owner.setUsageKeyLimits({ usage_api_key: keyId, runs_per_minute: 4 });
      expect(await run(key)).to.equal("200");
      expect(await run(key)).to.equal("429 rate_limited");
      await owner.setUsageKeyLimits({ usage_api_key: keyId });
      expect(await run(key)).to.equal("200");
      expect(await owner.listUsageKeyLimits({})).to.deep.equal({ items: [], total: 0 });
    });
  }

  it("are the owner's to set, for keys of the account; any of its keys may read them", async () => {
    const { owner, key, keyId } = await inApiMode();
    const other = await inApiMode();
    const holder = createClient({ baseUrl: stack().baseUrl, apiKey: key });
    expect(await refused(holder.setUsageKeyLimits({ usage_api_key: keyId }))).to.equal("403 owner_only");
    expect(await refused(owner.setUsageKeyLimits({ usage_api_key: other.keyId }))).to.equal("404 unknown_usage_key");
    await owner.setUsageKeyLimits({ usage_api_key: keyId, cents_per_day: 5 });
    expect((await holder.listUsageKeyLimits({})).items).to.have.length(1);
    expect((await other.owner.listUsageKeyLimits({})).items).to.deep.equal([]);
    for (const origin of ["app.example", "https://app.example/", "https://*.example"])
      expect(await refused(owner.setUsageKeyLimits({ usage_api_key: keyId, origins: [origin] }))).to.match(/^4/);
  });
});
