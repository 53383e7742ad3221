/**
 * Owners who sign in with an identity provider: a token creates an account, authenticates its owner, and hands the
 * account to a multisig, after which it is no longer accepted.
 */
import { expect } from "chai";
import { randomBytes } from "node:crypto";
import { Wallet, type JsonRpcProvider } from "ethers";
import { createChainSecuredClient, createClient, type Client } from "../../client";
import { packedAccountId, type Address } from "../../protocol/ids";
import { connect, fundedWallet } from "../support/chain";
import { Api, members, send } from "../support/http";
import { NO_RIGHTS, SIGN, expectSigned, makeAccount, makeGroup, makeUsageKey, refused } from "../support/journey";
import { deploySafe } from "../support/safe";
import { useIdentityProvider, useStack } from "../support/stack";

describe("an owner with an identity token", () => {
  const stack = useStack();
  const provider = useIdentityProvider();
  let chain: JsonRpcProvider;
  before(() => {
    chain = connect(stack().rpcUrl);
  });
  after(() => chain.destroy());

  /** A client that sends a fresh token of this person with each call. */
  const ownerClient = (subject: string): Client =>
    createClient({ baseUrl: stack().baseUrl, identityToken: () => provider().token(subject) });
  const person = (): string => `person-${randomBytes(6).toString("hex")}`;
  async function newOwner(): Promise<{ subject: string; client: Client; accountId: string; wallet: string }> {
    const subject = person();
    const client = ownerClient(subject);
    const made = await client.newAccount({ account_name: "Ann", account_description: "" });
    expect(made).not.to.have.property("api_key");
    return { subject, client, accountId: made.api_key_hash, wallet: made.wallet_address };
  }

  it("gets one managed account, owned by the wallet of issuer and subject", async () => {
    const { client, accountId, wallet, subject } = await newOwner();
    expect(accountId).to.equal(packedAccountId(wallet as Address));
    expect(await client.account()).to.include({ id: accountId, owner: wallet, managed: true });
    expect(await refused(ownerClient(subject).newAccount({ account_name: "again", account_description: "" }))).to.equal(
      "409 account_id_taken",
    );
    expect((await newOwner()).wallet).not.to.equal(wallet);
  });

  it("gets its own account, whoever has used the same idempotency key at its address", async () => {
    const { baseUrl } = stack();
    const body = { account_name: "Ann", account_description: "" };
    const key = randomBytes(32).toString("hex");
    const answerTo = async (subject: string | undefined, query = ""): Promise<Record<string, unknown>> => {
      const token = subject === undefined ? [] : [["x-identity-token", await provider().token(subject)]];
      const headers = Object.fromEntries([["idempotency-key", key], ...token]) as Record<string, string>;
      return members(await send(`${baseUrl}/core/v1/new_account${query}`, { method: "POST", headers, body }));
    };
    const [first, second] = [person(), person()];
    const made = [await answerTo(undefined), await answerTo(first), await answerTo(second, "?secret=again")];
    expect(made.map(({ success }) => success)).to.deep.equal([true, true, true]);
    expect(new Set(made.map(({ api_key_hash: id }) => id)).size).to.equal(3);
    expect(new Set(made.map(({ transaction_hash: hash }) => hash)).size).to.equal(3);
    for (const [subject, { api_key_hash: id }] of [
      [first, made[1] ?? {}],
      [second, made[2] ?? {}],
    ] as const)
      expect(await ownerClient(subject).account()).to.include({ id });
    // To each its own answer, with a fresh token too.
    expect(await answerTo(first)).to.deep.equal(made[1]);
  });

  it("completes the main flow without any account key", async () => {
    const { client } = await newOwner();
    const fixture = await makeGroup(client);
    await expectSigned(client, fixture.pkp);
    const bot = await makeUsageKey(client, stack().baseUrl, { execute_in_groups: [fixture.group] });
    await expectSigned(bot.client, fixture.pkp);
    await client.removeUsageApiKey({ usage_api_key: bot.key });
    expect(await refused(bot.client.runAction({ code: SIGN, js_params: {} }))).to.equal("401 unknown_key");
    expect((await client.balance()).balance_cents).to.be.lessThan(2000);
  });

  it("is refused with a token that is forged, stale, for another audience, or of an unknown issuer", async () => {
    const { subject, accountId } = await newOwner();
    const now = Math.floor(Date.now() / 1000);
    const bad = {
      forged: provider().token(subject, {}, "stranger"),
      "another audience": provider().token(subject, { aud: "another-service" }),
      "another issuer": provider().token(subject, { iss: "https://accounts.example" }),
      expired: provider().token(subject, { exp: now - 60 }),
      "issued long ago": provider().token(subject, { iat: now - 3600 }),
      "for another party": provider().token(subject, { azp: "another-client" }),
      "without a subject": provider().token(""),
      "no token": Promise.resolve("no.token.atall"),
    };
    for (const [name, token] of Object.entries(bad)) {
      const client = createClient({ baseUrl: stack().baseUrl, identityToken: await token });
      for (const call of [
        () => client.account(),
        () => client.addGroup({ group_name: "g", group_description: "" }),
        () => client.newAccount({ account_name: "a", account_description: "" }),
      ]) {
        expect(await refused(call()), name).to.equal("401 invalid_identity_token");
      }
    }
    expect(await ownerClient(subject).account()).to.include({ id: accountId, group_count: 0 });
  });

  it("cannot access another person's account", async () => {
    const [ann, bob] = [await newOwner(), await newOwner()];
    const { group } = await makeGroup(ann.client);
    expect((await bob.client.listGroups()).total).to.equal(0);
    expect(await refused(bob.client.removeGroup({ group_id: group }))).to.equal("404 unknown_group");
    const key = await makeUsageKey(ann.client, stack().baseUrl, {});
    expect(await refused(bob.client.removeUsageApiKey({ usage_api_key: key.keyId }))).to.equal("404 unknown_usage_key");
  });

  it("cannot convert with the token, nor send it together with a key", async () => {
    const { client } = await newOwner();
    const { apiKey } = await makeAccount(stack().baseUrl);
    const body = { typed_data: {}, signature: "0x", new_admin_wallet_address: Wallet.createRandom().address };
    expect(await refused(client.convertToChainSecuredAccount(body))).to.match(/^40[013] /);
    const both = { "x-api-key": apiKey, "x-identity-token": await provider().token(person()) };
    expect((await fetch(`${stack().baseUrl}/core/v1/account`, { headers: both })).status).to.equal(400);
  });

  it("hands the account to a multisig, which then revokes the old keys; the token is no longer accepted", async () => {
    const { baseUrl } = stack();
    const { client, accountId } = await newOwner();
    const fixture = await makeGroup(client);
    const broad = await makeUsageKey(client, baseUrl, {
      execute_in_groups: [0],
      can_create_groups: true,
      can_create_pkps: true,
    });
    const seats = [Wallet.createRandom(chain), Wallet.createRandom(chain)];
    const safe = await deploySafe(await fundedWallet(chain), seats, 2);

    expect(await refused(broad.client.transferOwnership({ new_owner_address: safe.address }))).to.equal(
      "403 owner_only",
    );
    const { transaction_hash } = await client.transferOwnership({ new_owner_address: safe.address });
    expect(transaction_hash).to.match(/^0x[0-9a-f]{64}$/);
    for (const call of [
      () => client.listGroups(),
      () => client.addGroup({ group_name: "g", group_description: "" }),
      () => client.addUsageApiKey(NO_RIGHTS),
      () => client.balance(),
      () => client.runAction({ code: SIGN }),
    ]) {
      expect(await refused(call())).to.equal("403 account_chain_secured");
    }
    expect(await refused(broad.client.addGroup({ group_name: "g", group_description: "" }))).to.equal(
      "403 account_chain_secured",
    );
    await expectSigned(broad.client, fixture.pkp);

    const owner = await createChainSecuredClient({
      baseUrl,
      signer: Wallet.createRandom(chain),
      owner: safe.address,
      accountId,
    });
    const revoke = owner.safeFile([await owner.prepare.removeUsageApiKey({ usage_api_key: broad.keyId })], {
      name: "Revoke what the old owner gave",
    });
    await safe.execute(revoke.transactions);
    expect(await refused(broad.client.runAction({ code: SIGN, js_params: {} }))).to.equal("401 unknown_key");
    expect(await owner.account()).to.include({
      id: accountId,
      owner: safe.address,
      managed: false,
      usage_api_key_count: 0,
    });
  });
});

describe("an account handed to an identity", function () {
  this.timeout(90_000);
  const stack = useStack();
  const provider = useIdentityProvider();
  let chain: JsonRpcProvider;
  before(() => (chain = connect(stack().rpcUrl)));
  after(() => chain.destroy());

  async function handedOver() {
    const { baseUrl } = stack();
    const subject = `person-${randomBytes(6).toString("hex")}`;
    const owner = createClient({ baseUrl, identityToken: () => provider().token(subject) });
    const account = await makeAccount(baseUrl);
    const fixture = await makeGroup(account.client);
    await account.client.transferOwnership({ new_owner_identity_token: await provider().token(subject) });
    return { baseUrl, owner, account, fixture };
  }

  it("is managed by its token, runs, moves to a wallet and to a Safe; its own wallet never holds coin", async () => {
    const { baseUrl, owner, account, fixture } = await handedOver();
    expect(await refused(account.client.listGroups())).to.equal("403 account_chain_secured");

    const seen = await owner.account();
    expect(seen).to.include({ id: account.accountId, managed: false });
    const bot = await makeUsageKey(owner, baseUrl, { execute_in_groups: [fixture.group] });
    await expectSigned(bot.client, fixture.pkp);
    const second = await owner.createWallet({ name: "second" });
    await owner.updateGroup({
      group_id: fixture.group,
      name: "both",
      description: "",
      pkp_ids_permitted: [fixture.pkp, second.wallet_address],
    });
    await expectSigned(bot.client, second.wallet_address);
    await owner.removeUsageApiKey({ usage_api_key: bot.key });
    expect(await refused(bot.client.runAction({ code: SIGN, js_params: {} }))).to.equal("401 unknown_key");
    expect([await chain.getBalance(seen.owner), await chain.getTransactionCount(seen.owner)]).to.deep.equal([0n, 0]);

    const wallet = await fundedWallet(chain);
    await owner.transferOwnership({ new_owner_address: wallet.address });
    expect(await refused(owner.account())).to.match(/^40[34] /);
    const seats = [Wallet.createRandom(chain), Wallet.createRandom(chain)];
    const safe = await deploySafe(wallet, seats, 2);
    const byWallet = await createChainSecuredClient({ baseUrl, signer: wallet, accountId: account.accountId });
    await byWallet.transferOwnership({ new_owner_address: safe.address });
    expect(await byWallet.account()).to.include({ owner: safe.address });
  });

  it("reports its own errors as in API mode, also for an unknown PKP number", async () => {
    const { owner, fixture } = await handedOver();
    expect(await refused(owner.addPkpToGroup({ group_id: fixture.group, pkp_id: 77 }))).to.equal(
      "404 unknown_pkp_number",
    );
    expect(await refused(owner.updateWallet({ pkp_id: 77, name: "", description: "" }))).to.equal(
      "404 unknown_pkp_number",
    );
    expect(await refused(owner.addPkpToGroup({ group_id: "77", pkp_id: 77 }))).to.equal("404 unknown_group");
  });

  it("can be one of several of the same identity: concurrent writes to both all land", async () => {
    const { baseUrl } = stack();
    const subject = `person-${randomBytes(6).toString("hex")}`;
    const accounts = await Promise.all([makeAccount(baseUrl), makeAccount(baseUrl)]);
    for (const { client } of accounts)
      await client.transferOwnership({ new_owner_identity_token: await provider().token(subject) });
    const api = new Api(baseUrl);
    const token = await provider().token(subject);
    const writes = ["a", "b", "c", "d"].flatMap((name) => accounts.map(({ accountId }) => ({ name, accountId })));
    const answers = await Promise.all(
      writes.map(({ name, accountId }) =>
        api.post(
          "/add_group",
          { group_name: name, group_description: "" },
          { headers: { "x-identity-token": token, "x-account": accountId } },
        ),
      ),
    );
    expect(answers.map(({ status, text }) => (status === 200 ? status : text))).to.deep.equal(answers.map(() => 200));
    expect(answers.map((answer) => members(answer)["group_id"]).sort()).to.deep.equal([
      "1",
      "1",
      "2",
      "2",
      "3",
      "3",
      "4",
      "4",
    ]);
  });

  it("requires the identity's token: an address without a known key is refused", async () => {
    const { baseUrl } = stack();
    const subject = `person-${randomBytes(6).toString("hex")}`;
    const identity = createClient({ baseUrl, identityToken: () => provider().token(subject) });
    const made = await identity.newAccount({ account_name: "Ann", account_description: "" });
    const account = await makeAccount(baseUrl);
    const pkp = await account.client.createWallet({});
    const balance = (await account.client.balance()).balance_cents;
    for (const address of [made.wallet_address, pkp.wallet_address]) {
      expect(await refused(account.client.transferOwnership({ new_owner_address: address }))).to.equal(
        "400 owner_needs_token",
      );
    }
    expect(await refused(account.client.transferOwnership({ new_owner_identity_token: "no.token.atall" }))).to.equal(
      "401 invalid_identity_token",
    );
    expect((await account.client.balance()).balance_cents).to.equal(balance);
    expect(await account.client.account()).to.include({ managed: true });
  });
});
