/**
 * Accounts that somebody else hands to an owner: on chain or gasless, by transfer or by conversion, whose keys the
 * giver keeps. They never become what the owner's requests mean; and no way hands an account to somebody who cannot
 * use it.
 */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { Wallet, type HDNodeWallet, type Interface, type JsonRpcProvider } from "ethers";
import { convertAccount, createClient } from "../../client";
import { packedAccountId, walletAddressOf, type AccountId, type Address, type ApiKey } from "../../protocol/ids";
import { buildTypedData, type PrimaryType } from "../../protocol/typedData";
import { AccountManager__factory } from "../../typechain-types";
import { connect, fundedWallet } from "../support/chain";
import { eventually } from "../support/chainBed";
import { signedForward } from "../support/forwards";
import { Api, codeOf, members, type HttpAnswer } from "../support/http";
import { makeAccount, refused, type TestAccount } from "../support/journey";
import { useIdentityProvider, useStack } from "../support/stack";

const ABI: Interface = AccountManager__factory.createInterface();

describe("an account that a stranger plants", function () {
  this.timeout(120_000);
  const stack = useStack();
  const identityProvider = useIdentityProvider();
  let provider: JsonRpcProvider;
  let contract: string;
  let api: Api;
  before(async () => {
    provider = connect(stack().rpcUrl);
    api = new Api(stack().baseUrl);
    contract = String(members(await api.get("/get_node_chain_config"))["contract_address"]);
  });
  after(() => provider.destroy());

  const as = (wallet: HDNodeWallet | Wallet) => AccountManager__factory.connect(contract, wallet);

  async function signed(primaryType: PrimaryType, wallet: HDNodeWallet): Promise<object> {
    const domain = { name: "Keywright ChainSecured", version: "1", chainId: 31_337n } as const;
    const typed_data = buildTypedData(primaryType, domain, wallet.address as Address, Math.floor(Date.now() / 1000));
    const { EIP712Domain: _, ...types } = typed_data.types as Record<string, { name: string; type: string }[]>;
    return { typed_data, signature: await wallet.signTypedData(domain, types, typed_data.message) };
  }
  async function asWallet(wallet: HDNodeWallet, account?: string): Promise<HttpAnswer> {
    const header = Buffer.from(JSON.stringify(await signed("BillingAuth", wallet))).toString("base64");
    const named: Record<string, string> = account === undefined ? {} : { "x-account": account };
    return api.get("/billing/balance", { headers: { "x-wallet-auth": header, ...named } });
  }
  const mint = async (wallet: HDNodeWallet): Promise<HttpAnswer> =>
    api.post("/create_wallet_with_signature", await signed("CreateWallet", wallet));
  const tailOf = (answer: HttpAnswer): string => String(members(answer)["derivation_path"]).slice(-32);

  /** The giver of an API account is a wallet, too: its secret is the account key. */
  async function giver(): Promise<{ account: TestAccount; wallet: Wallet }> {
    const account = await makeAccount(stack().baseUrl);
    const secret = `0x${Buffer.from(account.apiKey, "base64").toString("hex")}`;
    const wallet = new Wallet(secret, provider);
    expect(walletAddressOf(account.apiKey as ApiKey)).to.equal(wallet.address);
    await provider.send("anvil_setBalance", [wallet.address, "0x56bc75e2d63100000"]);
    return { account, wallet };
  }
  const relay = async (wallet: Wallet | HDNodeWallet, name: string, args: unknown[]): Promise<HttpAnswer> =>
    api.post("/relay", await signedForward(api, wallet, name, args));
  const inMulticall = (wallet: Wallet | HDNodeWallet, name: string, args: unknown[]): Promise<HttpAnswer> =>
    relay(wallet, "multicall", [[ABI.encodeFunctionData(name, args)]]);

  /** Every way to hand an account to somebody without being asked. */
  const WAYS: Readonly<Record<string, (victim: string) => Promise<AccountId>>> = {
    "by conversion on chain": async (victim) => {
      const { account, wallet } = await giver();
      await (await as(wallet).convertToChainSecuredAccount(account.accountId, victim)).wait();
      return account.accountId as AccountId;
    },
    "by conversion, gasless": async (victim) => {
      const { account, wallet } = await giver();
      expect((await relay(wallet, "convertToChainSecuredAccount", [account.accountId, victim])).status).to.equal(200);
      return account.accountId as AccountId;
    },
    "by conversion in a multicall, gasless": async (victim) => {
      const { account, wallet } = await giver();
      const answer = await inMulticall(wallet, "convertToChainSecuredAccount", [account.accountId, victim]);
      expect(answer.status, answer.text).to.equal(200);
      return account.accountId as AccountId;
    },
    "by transfer through the API": async (victim) => {
      const { account } = await giver();
      await account.client.transferOwnership({ new_owner_address: victim });
      return account.accountId as AccountId;
    },
    "by transfer of a ChainSecured account": async (victim) => {
      const wallet = await fundedWallet(provider);
      await (await as(wallet).newChainSecuredAccount("bait", "")).wait();
      await (await as(wallet).transferOwnership(packedAccountId(wallet.address as Address), victim)).wait();
      return packedAccountId(wallet.address as Address);
    },
  };

  for (const [way, plant] of Object.entries(WAYS)) {
    it(`${way}: is not what a fresh wallet's requests mean`, async () => {
      const victim = Wallet.createRandom();
      const planted = await plant(victim.address);
      const own = packedAccountId(victim.address as Address);
      await eventually("it is known", async () => (await asWallet(victim)).status === 400);
      const billing = await asWallet(victim);
      expect(codeOf(billing)).to.equal("account_not_named");
      expect(members(billing)).to.deep.include({ accounts: [planted], given: [planted] });
      expect(tailOf(await mint(victim))).to.equal(own.slice(-32));
      expect((await asWallet(victim, planted)).headers["x-account"], "by naming it").to.equal(planted);
    });

    it(`${way}: changes nothing for the owner of a converted account`, async () => {
      const victim = await fundedWallet(provider);
      const account = await makeAccount(stack().baseUrl);
      await convertAccount({ baseUrl: stack().baseUrl, apiKey: account.apiKey, signer: victim });
      await plant(victim.address);
      const billing = await asWallet(victim);
      expect([billing.status, billing.headers["x-account"]], billing.text).to.deep.equal([200, account.accountId]);
      expect(tailOf(await mint(victim))).to.equal(account.accountId.slice(-32));
    });
  }

  it("of the wallet's own id, handed over and back: means nothing until the wallet has written to it", async () => {
    const [owner, holder] = [await fundedWallet(provider), await fundedWallet(provider)];
    const id = packedAccountId(owner.address as Address);
    await (await as(owner).newChainSecuredAccount("", "")).wait();
    expect((await asWallet(owner)).headers["x-account"]).to.equal(id);
    await (await as(owner).transferOwnership(id, holder.address)).wait();
    await (await as(holder).addGroup(id, "bait", "", [0], [])).wait();
    await (await as(holder).transferOwnership(id, owner.address)).wait();
    await eventually("it is known", async () => (await asWallet(owner)).status === 400);
    expect(members(await asWallet(owner))).to.deep.include({ accounts: [id], given: [id] });
    expect([(await mint(owner)).status, codeOf(await mint(owner))]).to.deep.equal([400, "invalid_value"]);
    const { apiKey, accountId } = await makeAccount(stack().baseUrl);
    await convertAccount({ baseUrl: stack().baseUrl, apiKey, signer: owner });
    await eventually("the other is", async () => (await asWallet(owner)).headers["x-account"] === accountId);
    expect(tailOf(await mint(owner))).to.equal(accountId.slice(-32));
    await (await as(owner).removeGroup(id, 1)).wait();
    await eventually("it is its own again", async () => (await asWallet(owner)).headers["x-account"] === id);
  });

  it("becomes the wallet's own once the wallet has written to it", async () => {
    const owner = await fundedWallet(provider);
    const { account } = await giver();
    await account.client.transferOwnership({ new_owner_address: owner.address });
    expect((await asWallet(owner)).status).to.equal(400);
    await (await as(owner).addGroup(account.accountId, "mine", "", [], [])).wait();
    await eventually("it is known", async () => (await asWallet(owner)).headers["x-account"] === account.accountId);
    expect(tailOf(await mint(owner))).to.equal(account.accountId.slice(-32));
  });

  it("changes nothing for an identity with an account, or with one handed over by its token", async () => {
    const { baseUrl } = stack();
    const person = () => {
      const subject = `person-${randomBytes(6).toString("hex")}`;
      const token = (): Promise<string> => identityProvider().token(subject);
      return { token, client: createClient({ baseUrl, identityToken: token }) };
    };
    const walletOf = async (token: string): Promise<string> => {
      const made = await createClient({ baseUrl, identityToken: () => token }).newAccount({
        account_name: "",
        account_description: "",
      });
      return made.wallet_address;
    };
    const settled = person();
    const wallet = await walletOf(await settled.token());
    const before = await settled.client.account();
    await WAYS["by conversion on chain"]?.(wallet);
    expect((await settled.client.account()).id).to.equal(before.id);

    const heir = person();
    const { account } = await giver();
    await account.client.transferOwnership({ new_owner_identity_token: await heir.token() });
    const heirs = (await heir.client.account()).owner;
    await WAYS["by conversion on chain"]?.(heirs);
    expect((await heir.client.account()).id).to.equal(account.accountId);
  });

  describe("and owners who could not act", () => {
    /** The same handover by the route and, as the wallet of the same account, by relayed requests. */
    async function bothWays(newOwner: string): Promise<unknown[]> {
      const { account, wallet } = await giver();
      const byRoute = await refused(account.client.transferOwnership({ new_owner_address: newOwner }));
      const args = [account.accountId, newOwner];
      const relayed = [
        await relay(wallet, "transferOwnership", args),
        await relay(wallet, "convertToChainSecuredAccount", args),
        await inMulticall(wallet, "transferOwnership", args),
        await inMulticall(wallet, "convertToChainSecuredAccount", args),
      ].map((answer) => `${answer.status} ${String(codeOf(answer))}`);
      expect(members(await api.with(account.apiKey).get("/account"))["managed"], "nothing changed").to.equal(true);
      return [...new Set([byRoute, ...relayed])];
    }

    it("are refused everywhere: a PKP of the account or of another one, a payer, an identity", async () => {
      const { baseUrl } = stack();
      const other = await makeAccount(baseUrl);
      const theirs = await other.client.createWallet({});
      const chainSecured = await fundedWallet(provider);
      const minted = members(await mint(chainSecured));
      const id = packedAccountId(chainSecured.address as Address);
      await (await as(chainSecured).newChainSecuredAccount("", "")).wait();
      const [pkp, path] = [String(minted["wallet_address"]), String(minted["derivation_path"])];
      await (await as(chainSecured).registerWalletDerivation(id, pkp, path, "", "")).wait();
      const payers = (await api.get("/get_api_payers")).body as string[];
      const adminPayer = (await api.get("/get_admin_api_payer")).body as string;
      const subject = `person-${randomBytes(6).toString("hex")}`;
      const person = createClient({ baseUrl, identityToken: () => identityProvider().token(subject) });
      const identity = await person.newAccount({ account_name: "", account_description: "" });
      for (const owner of [theirs.wallet_address, pkp, String(payers[0]), adminPayer, identity.wallet_address])
        expect(await bothWays(owner), owner).to.deep.equal(["400 owner_needs_token"]);
    });

    it("are not confused with a wallet that somebody else registered as a PKP", async () => {
      const victim = Wallet.createRandom();
      const attacker = await fundedWallet(provider);
      const id = packedAccountId(attacker.address as Address);
      await (await as(attacker).newChainSecuredAccount("", "")).wait();
      const path = `0x01${randomBytes(15).toString("hex")}${id.slice(34)}`;
      await (await as(attacker).registerWalletDerivation(id, victim.address, path, "", "")).wait();
      const { account } = await giver();
      await account.client.transferOwnership({ new_owner_address: victim.address });
    });
  });
});
