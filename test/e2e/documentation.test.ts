/**
 * The snippets of docs/sdk.md and docs/chain-secured.md are cut from the examples, and the examples run against a whole
 * stack.
 */
import { expect } from "chai";
import { CURVES } from "../../protocol/curves";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Wallet, id, type JsonRpcProvider } from "ethers";
import { defineChain, type Hex } from "viem";
import { createClient } from "../../client";
import { permit, withEthers, withViem, withWagmi } from "../../client/examples/accounts";
import { apiMode } from "../../client/examples/api";
import { asTheSafe, handOver, ownerIsSafe } from "../../client/examples/safe";
import { convert, halves, ownerWithWallet } from "../../client/examples/wallet";
import { connect, fundedWallet } from "../support/chain";
import { NO_RIGHTS, SIGN, expectSigned, makeAccount, refused } from "../support/journey";
import { deploySafe, type TestSafe } from "../support/safe";
import { useStack } from "../support/stack";

const ROOT = join(__dirname, "..", "..");
const PAGES = ["sdk.md", "chain-secured.md"];
const BLOCK = /<!-- snippet: (\S+) (\S+) -->\n\n```ts\n([\s\S]*?)```/g;

/** The lines between `// snippet: name` and `// end`, without their indentation. */
function snippet(file: string, name: string): string {
  const source = readFileSync(join(ROOT, "client", "examples", file), "utf8");
  const found = new RegExp(`\\n( *)// snippet: ${name}\\n([\\s\\S]*?)\\n *// end\\n`).exec(source);
  if (found === null) throw new Error(`${file} has no snippet ${name}`);
  const [, margin = "", lines = ""] = found;
  return (
    lines
      .split("\n")
      .map((line) => line.replace(new RegExp(`^${margin}`), ""))
      .join("\n") + "\n"
  );
}

describe("the pages about the SDK", () => {
  for (const name of PAGES) {
    it(`docs/${name} shows the examples unchanged (KEYWRIGHT_UPDATE=1 writes them)`, () => {
      const file = join(ROOT, "docs", name);
      const page = readFileSync(file, "utf8");
      const fresh = page.replace(
        BLOCK,
        (_, source: string, part: string) =>
          `<!-- snippet: ${source} ${part} -->\n\n\`\`\`ts\n${snippet(source, part)}\`\`\``,
      );
      if (process.env["KEYWRIGHT_UPDATE"] === "1") writeFileSync(file, fresh);
      else expect(page).to.equal(fresh);
      expect(page.match(/```ts/g)?.length).to.equal([...page.matchAll(BLOCK)].length);
    });
  }

  it("docs/sdk.md explains every error code of the SDK", () => {
    const source = readFileSync(join(ROOT, "client", "errors.ts"), "utf8");
    const codes = [...source.matchAll(/^ {2}\| "([a-z_]+)"/gm)].map(([, code = ""]) => code);
    expect(codes).to.have.length.greaterThan(5);
    const page = readFileSync(join(ROOT, "docs", "sdk.md"), "utf8");
    for (const code of codes) expect(page).to.include(`\`${code}\``);
  });

  describe("the examples run", () => {
    const stack = useStack();
    let provider: JsonRpcProvider;
    let safe: TestSafe;
    const seats = [new Wallet(id("one seat")), new Wallet(id("another seat"))];

    before(async () => {
      provider = connect(stack().rpcUrl);
      safe = await deploySafe(await fundedWallet(provider), seats, 2);
    });
    after(() => provider.destroy());

    it("for a client in API mode", async () => {
      const stored: Record<string, string> = {};
      const store = async (name: string, value: string): Promise<void> => {
        stored[name] = value;
      };
      const seen = await apiMode(stack().baseUrl, store, async () => undefined);
      expect(seen.run.response).to.equal("hello world");
      expect([seen.total, seen.items.length, seen.same]).to.deep.equal([1, 1, true]);
      expect(stored).to.have.keys("account-key", "treasury", "gone already", ...CURVES);
    });

    it("for a PKP as an account", async () => {
      const { baseUrl, rpcUrl } = stack();
      const { client } = await makeAccount(baseUrl);
      const { wallet_address: pkp } = await client.createWallet({});
      await permit(client, pkp);
      await provider.send("anvil_setBalance", [pkp, "0xde0b6b3a7640000"]);
      expect(await withEthers(client, pkp, provider, pkp)).to.equal(pkp);
      const chain = defineChain({
        id: 31337,
        name: "test",
        nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
        rpcUrls: { default: { http: [rpcUrl] } },
      });
      const hash = await withViem(client, pkp, chain, pkp as Hex);
      expect((await provider.waitForTransaction(hash))?.from).to.equal(pkp);
      expect(withWagmi(client, pkp, chain).connectors[0]?.id).to.equal("keywright");
    });

    it("for an owner with a wallet", async () => {
      const { baseUrl } = stack();
      const wallet = await fundedWallet(provider);
      const stored: Record<string, string> = {};
      const seen = await ownerWithWallet(baseUrl, provider, wallet.privateKey, async (name, value) => {
        stored[name] = value;
      });
      expect(seen).to.include({ name: "Acme", managed: false, ownerAddress: wallet.address, may: true });
      expect(seen.keyNames).to.deep.equal(["payout bot"]);
      expect(stored).to.deep.equal({ "payout-bot": seen.usage_api_key });
      expect(await createClient({ baseUrl, apiKey: seen.usage_api_key }).accountExists()).to.equal(false);

      const key = await halves(baseUrl, wallet, { ...NO_RIGHTS, execute_in_groups: [1] });
      expect(await createClient({ baseUrl, apiKey: key }).accountExists()).to.equal(true);
    });

    it("for an owner that is a Safe", async () => {
      const { baseUrl } = stack();
      const cid = await createClient({ baseUrl }).getActionIpfsId(SIGN);
      const seen = await ownerIsSafe(
        baseUrl,
        provider,
        safe.address,
        cid,
        { ...NO_RIGHTS, execute_in_groups: [1] },
        (file) => safe.execute(file.transactions),
      );
      expect(seen).to.include({ ownerAddress: safe.address, wallet_count: 1 });
      await expectSigned(seen.bot, seen.pkp);
      const delegate = new Wallet(id("a delegate"), provider);
      expect(await asTheSafe(baseUrl, delegate, safe.address, seats)).to.deep.equal([]);
      await safe.execute([seen.single]);
      expect(await refused(seen.bot.listGroups())).to.equal("401 unknown_key");
    });

    it("for an account converted from API mode", async () => {
      const { baseUrl } = stack();
      const [first, second] = [await makeAccount(baseUrl), await makeAccount(baseUrl)];
      const wallet = await fundedWallet(provider);
      expect(await convert(baseUrl, first.apiKey, wallet)).to.equal(first.accountId);
      await handOver(baseUrl, second.apiKey, safe.address);
      expect(await refused(second.client.account())).to.equal("403 account_chain_secured");
    });
  });
});
