/**
 * Names on chain are arbitrary bytes: NUL, half a UTF-8 sequence, anything. The follower continues and reads still
 * answer.
 */
import { expect } from "chai";
import { Interface, JsonRpcProvider, Wallet, parseEther, toBeHex } from "ethers";
import { buildTypedData } from "../../../../protocol/typedData";
import type { Address } from "../../../../protocol/ids";
import { Api, members, newApiAccount } from "../../../support/http";
import { useStack } from "../../../support/stack";

const STRINGS = new Interface(["function newChainSecuredAccount(string name, string description)"]);
const BYTES = new Interface(["function newChainSecuredAccount(bytes name, bytes description)"]);
/** Truncated sequences, a surrogate in CESU-8, an overlong form. */
const NO_UTF8 = "0xff41c328eda080c0af";

describe("names that are not UTF-8", function () {
  this.timeout(60_000);
  const stack = useStack();

  async function accountNamed(name: string): Promise<Wallet> {
    const provider = new JsonRpcProvider(stack().rpcUrl, undefined, { staticNetwork: true, cacheTimeout: -1 });
    try {
      const wallet = new Wallet(Wallet.createRandom().privateKey, provider);
      await provider.send("hardhat_setBalance", [wallet.address, toBeHex(parseEther("1"))]);
      const encoded = BYTES.encodeFunctionData("newChainSecuredAccount", [name, name]).slice(10);
      const data = (STRINGS.getFunction("newChainSecuredAccount")?.selector ?? "0x") + encoded;
      await (await wallet.sendTransaction({ to: stack().contractAddress, data })).wait();
      return wallet;
    } finally {
      provider.destroy();
    }
  }

  async function walletAuth(wallet: Wallet): Promise<Record<string, string>> {
    const { name, chainId } = members(await new Api(stack().baseUrl).get("/get_node_chain_config"))[
      "typed_data_domain"
    ] as { name: string; chainId: string };
    const typed_data = buildTypedData(
      "BillingAuth",
      { name, version: "1", chainId: BigInt(chainId) },
      wallet.address as Address,
      Math.floor(Date.now() / 1000),
    );
    const { EIP712Domain: _, ...types } = typed_data.types as Record<string, { name: string; type: string }[]>;
    const signature = await wallet.signTypedData(typed_data.domain, types, typed_data.message);
    return { "x-wallet-auth": Buffer.from(JSON.stringify({ typed_data, signature })).toString("base64") };
  }

  for (const [what, bytes] of [
    ["no UTF-8", NO_UTF8],
    ["NUL", "0x610062"],
  ] as const) {
    it(`${what}: the account can be read, with the printable part of its name`, async () => {
      const wallet = await accountNamed(bytes);
      const answer = await new Api(stack().baseUrl).get("/account", { headers: await walletAuth(wallet) });
      expect(answer.status, answer.text).to.equal(200);
      expect(members(answer)["name"]).to.equal(Buffer.from(bytes.slice(2), "hex").toString("utf8"));
    });
  }

  it("events of all accounts are still followed, including these", async () => {
    const account = await newApiAccount(stack().baseUrl);
    await account.api.must("/add_group", { group_name: "nul\u0000nul", group_description: "\u0001 \ufffd 💥" });
    await account.api.must("/add_group", { group_name: "after", group_description: "" });
    const names = async (): Promise<unknown[]> => {
      const { events } = members(await account.api.get("/events")) as {
        events: { name: string; args: Record<string, unknown> }[];
      };
      return events.filter(({ name }) => name === "GroupAdded").map(({ args }) => args["name"]);
    };
    for (let tries = 0; tries < 300 && (await names()).length < 2; tries++)
      await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await names()).to.deep.equal(["nul\u0000nul", "after"]);
  });
});
