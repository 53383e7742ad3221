/**
 * What an owner can do without credit (freeze the account, revoke every key), and minting a key whose id another wallet
 * registers first.
 */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import type { HDNodeWallet } from "ethers";
import { packedAccountId, type AccountId, type Address, type KeyId } from "../../../protocol/ids";
import { fundedWallet } from "../../support/chain";
import { ChainBed } from "../../support/chainBed";
import { endWrite } from "../../support/endedWrite";
import { NO_PERMISSIONS, codeOf, members, newApiAccount, type ApiAccount } from "../../support/http";
import { startRelayerBed, type RelayerBed } from "../../support/relayerBed";
import { insertWebhook } from "../../support/webhookBed";

const MAX_MINTS = 4;

describe("an owner over HTTP", function () {
  this.timeout(120_000);
  let bed: ChainBed;
  let relayer: RelayerBed;
  let account: ApiAccount;
  before(async () => {
    bed = await ChainBed.start();
    relayer = await startRelayerBed({ chain: bed, store: {} });
  });
  after(async () => {
    await relayer?.stop();
    await bed?.stop();
  });
  beforeEach(async () => {
    account = await newApiAccount(relayer.baseUrl);
  });
  const balance = async (): Promise<number> =>
    (await relayer.credits.accounts.balance(account.id as AccountId)).balanceCents;

  describe("without credit", () => {
    let key: Record<string, unknown>;
    beforeEach(async () => {
      key = await account.api.must("/add_usage_api_key", { ...NO_PERMISSIONS, can_create_groups: true });
      const submissionId = randomBytes(16).toString("hex");
      await relayer.credits.reservations.reserveWrite({
        accountId: account.id as AccountId,
        submissionId,
        cents: await balance(),
      });
      await endWrite({ db: relayer.store.db, credits: relayer.credits }, submissionId, true);
      expect(await balance()).to.equal(0);
      expect(codeOf(await account.api.post("/add_group", { group_name: "g", group_description: "" }))).to.equal(
        "insufficient_credit",
      );
    });
    afterEach(async () => expect(await balance()).to.equal(0));

    it("freezes and unfreezes the account", async () => {
      await account.api.must("/freeze_account", {});
      expect((await bed.contract.getAccount(account.id)).frozen).to.equal(true);
      const refused = await account.api
        .with(String(key["usage_api_key"]))
        .post("/add_group", { group_name: "g", group_description: "" });
      expect([refused.status, codeOf(refused)]).to.deep.equal([403, "account_frozen"]);
      await account.api.must("/unfreeze_account", {});
      expect((await bed.contract.getAccount(account.id)).frozen).to.equal(false);
    });

    it("revokes every usage key, and a single one", async () => {
      await account.api.must("/remove_usage_api_key", { usage_api_key: key["api_key_hash"] });
      await account.api.must("/revoke_all_usage_api_keys", {});
      expect((await bed.contract.getKey(String(key["api_key_hash"]))).live).to.equal(false);
    });

    it("is told that writes were charged where the ledger has a posting, and nowhere else", async () => {
      const { db } = relayer.store;
      const webhook = await insertWebhook(db, account.id as AccountId, { events: ["write.*"] });
      await account.api.must("/remove_usage_api_key", { usage_api_key: key["api_key_hash"] });
      const exported = await relayer.chain.exportWrites(account.id as AccountId, undefined, 100);
      const posted = await db
        .selectFrom("ledger_entries")
        .select("reference")
        .where("account_id", "=", account.id)
        .where("kind", "=", "write")
        .execute();
      const references = new Set(posted.map(({ reference }) => reference));
      const charged = exported.map(({ kind, charged: isCharged }) => [kind, isCharged]);
      expect(charged).to.deep.equal([
        ["remove_usage_api_key", false],
        ["add_usage_api_key", true],
        ["new_account", false],
      ]);
      for (const { id, charged: isCharged } of exported) {
        expect(isCharged).to.equal(references.has(String(id)));
        expect(members(await account.api.get(`/submissions/${String(id)}`)).charged).to.equal(isCharged);
      }
      const [message] = await db
        .selectFrom("webhook_deliveries")
        .innerJoin("webhook_events", "webhook_events.place", "webhook_deliveries.place")
        .select(["type", "data"])
        .where("webhook_id", "=", webhook)
        .execute();
      expect(message?.type).to.equal("write.confirmed");
      expect(message?.data).to.include({ kind: "remove_usage_api_key", charged: false });
    });
  });

  describe("whose new key's id another wallet registers first", () => {
    let stranger: HDNodeWallet;
    let strangerId: AccountId;
    const minted: KeyId[] = [];
    before(async () => {
      stranger = await fundedWallet(bed.provider);
      strangerId = packedAccountId(stranger.address as Address);
      await (await bed.contract.connect(stranger).newChainSecuredAccount("", "")).wait();
    });

    /** Registers the ids of this many mints between the mint and the write. */
    function squat(times: number): void {
      const call = relayer.executor.call.bind(relayer.executor);
      minted.length = 0;
      relayer.executor.call = (async (name: Parameters<typeof call>[0], input: never) => {
        const answer = await call(name, input);
        if (name !== "mintApiUsageKey") return answer;
        const { apiKeyHash } = answer as unknown as { apiKeyHash: KeyId };
        if (minted.push(apiKeyHash) <= times) {
          await (
            await bed.contract
              .connect(stranger)
              .setUsageApiKey(strangerId, apiKeyHash, 0, 0, "", "", false, false, false, [], [], [], [])
          ).wait();
        }
        return answer;
      }) as typeof call;
    }
    afterEach(() => Reflect.deleteProperty(relayer.executor, "call"));

    it("gets another one, unnoticed, and pays once", async () => {
      squat(2);
      const before = await balance();
      const made = await account.api.must("/add_usage_api_key", { ...NO_PERMISSIONS, name: "third" });
      expect(minted).to.have.length(3);
      expect(made["api_key_hash"]).to.equal(minted[2]);
      expect((await bed.contract.getKey(String(made["api_key_hash"]))).accountId).to.equal(BigInt(account.id));
      expect((await account.api.with(String(made["usage_api_key"])).get("/list_groups")).status).to.equal(200);
      expect(before - (await balance())).to.equal(1);
    });

    it("gets an error after repeated collisions, pays nothing and can retry", async () => {
      squat(Infinity);
      const before = await balance();
      const refused = await account.api.post("/add_usage_api_key", NO_PERMISSIONS);
      expect([refused.status, codeOf(refused)]).to.deep.equal([409, "key_id_taken"]);
      expect(members(refused)).not.to.have.property("usage_api_key");
      expect(minted).to.have.length(MAX_MINTS);
      expect(await balance()).to.equal(before);
      Reflect.deleteProperty(relayer.executor, "call");
      await account.api.must("/add_usage_api_key", NO_PERMISSIONS);
    });
  });
});
