/**
 * What an owner can stop at once, over HTTP and by wallet: the whole account, every usage key, single ops of a PKP. And
 * what no other party can restore, squat or block.
 */
import { expect } from "chai";
import { Wallet, type HDNodeWallet, type JsonRpcProvider } from "ethers";
import { createChainSecuredClient, createClient, type ChainSecuredClient, type Client } from "../../client";
import { PKP_OP_NAMES } from "../../protocol/ops";
import { AccountManager__factory } from "../../typechain-types";
import { connect, fundedWallet } from "../support/chain";
import {
  NO_RIGHTS,
  SIGN,
  expectSigned,
  makeAccount,
  makeGroup,
  makeUsageKey,
  refusal,
  refused,
} from "../support/journey";
import { useStack } from "../support/stack";

const SEAL = `async function main({ pkpId, op }) {
  return op === "Encrypt"
    ? await Actions.Encrypt({ pkpId, message: "m" })
    : await Actions.signDigest({ pkpId, digest: "0x" + "11".repeat(32) });
}`;

/** Every op once, each with its result. With `only` just that one is made, and its error ends the run. */
const EVERY_OP = `async function main({ pkpId, only, ciphertext }) {
  const digest = "0x" + "11".repeat(32);
  const transaction = {
    type: 2,
    chainId: 1,
    nonce: 0,
    to: "0x" + "22".repeat(20),
    value: 0,
    gasLimit: 21000,
    maxFeePerGas: 1,
    maxPriorityFeePerGas: 1,
  };
  const typedData = {
    domain: { name: "Mail" },
    types: { Mail: [{ name: "text", type: "string" }] },
    message: { text: "m" },
  };
  const args = {
    signMessage: { message: "m" }, signTypedData: typedData, signTransaction: { transaction }, signDigest: { digest },
    Encrypt: { message: "m" }, Decrypt: { ciphertext }, getPrivateKey: {},
    signEd25519: { message: "m" }, signSchnorr: { digest, merkleRoot: "0x" }, signP256: { message: "m" },
  };
  const make = (op) => Actions[op]({ pkpId, ...args[op] });
  if (only !== undefined) return make(only);
  const ends = {};
  for (const op of Object.keys(args)) ends[op] = await make(op).then(() => "done", (error) => error.code);
  return ends;
}`;
const SEALED = `async function main({ pkpId }) { return Actions.Encrypt({ pkpId, message: "m" }); }`;

/** The operations of both kinds of owner, under the same names. */
interface Owner {
  readonly control: Pick<
    Client,
    "freezeAccount" | "unfreezeAccount" | "revokeAllUsageApiKeys" | "setWalletOps" | "account" | "listWallets"
  >;
  readonly bot: Client;
  readonly botId: string;
  readonly pkp: string;
}

describe("what an owner can stop", () => {
  const stack = useStack();
  let provider: JsonRpcProvider;
  before(() => {
    provider = connect(stack().rpcUrl);
  });
  after(() => provider.destroy());
  const contract = () => AccountManager__factory.connect(stack().deployment.contractAddress, provider);

  async function inApiMode(): Promise<Owner> {
    const { client } = await makeAccount(stack().baseUrl);
    const fixture = await makeGroup(client);
    await client.addActionToGroup({ group_id: fixture.group, action_ipfs_cid: await client.getActionIpfsId(SEAL) });
    const { client: bot, keyId: botId } = await makeUsageKey(client, stack().baseUrl, {
      execute_in_groups: [fixture.group],
      can_create_groups: true,
    });
    return { control: client, bot, botId, pkp: fixture.pkp };
  }

  async function freshOwner(): Promise<{ wallet: HDNodeWallet; owner: ChainSecuredClient }> {
    const wallet = await fundedWallet(provider);
    const owner = await createChainSecuredClient({ baseUrl: stack().baseUrl, signer: wallet });
    await owner.createAccount({ account_name: "Self", account_description: "" });
    return { wallet, owner };
  }

  async function chainSecured(): Promise<Owner> {
    const { owner } = await freshOwner();
    const { pkp_id: pkp } = await owner.createPkp();
    const { group_id } = await owner.addGroup({ group_name: "g", group_description: "", pkp_ids_permitted: [pkp] });
    for (const code of [SIGN, SEAL])
      await owner.addActionToGroup({ group_id, action_ipfs_cid: await owner.getActionIpfsId(code) });
    const key = await owner.createUsageKey({ ...NO_RIGHTS, execute_in_groups: [group_id] });
    const control = owner as unknown as Owner["control"];
    return {
      control,
      bot: createClient({ baseUrl: stack().baseUrl, apiKey: key.usage_api_key }),
      botId: key.api_key_hash,
      pkp,
    };
  }

  for (const [mode, make] of [
    ["in API mode", inApiMode],
    ["with a wallet", chainSecured],
  ] as const) {
    describe(mode, () => {
      it("a frozen account runs nothing until its owner unfreezes it", async () => {
        const { control, bot, pkp } = await make();
        await expectSigned(bot, pkp);
        expect((await control.account()).frozen).to.equal(false);
        await control.freezeAccount();
        expect((await control.account()).frozen).to.equal(true);
        expect(await refused(bot.runAction({ code: SIGN, js_params: { pkpId: pkp, message: "m" } }))).to.equal(
          "403 account_frozen",
        );
        await control.unfreezeAccount();
        await expectSigned(bot, pkp);
      });

      it("every usage key at once, permanently", async () => {
        const { control, bot, pkp, botId } = await make();
        await control.revokeAllUsageApiKeys();
        expect(await refused(bot.runAction({ code: SIGN, js_params: { pkpId: pkp, message: "m" } }))).to.equal(
          "401 unknown_key",
        );
        expect((await contract().getKey(botId)).live).to.equal(false);
      });

      it("single ops of a PKP, whatever code its groups list", async () => {
        const { control, bot, pkp } = await make();
        const outcome = async (code: string, op: string) =>
          (await bot.runAction({ code, js_params: { pkpId: pkp, message: "m", op } })).error?.code ?? "done";
        await control.setWalletOps({ pkp_id: pkp, denied_ops: ["signMessage", "Encrypt"] });
        expect((await control.listWallets()).items[0]?.denied_ops).to.deep.equal(["signMessage", "Encrypt"]);
        expect(await outcome(SIGN, "")).to.equal("permission_denied");
        expect(await outcome(SEAL, "Encrypt")).to.equal("permission_denied");
        expect(await outcome(SEAL, "signDigest")).to.equal("done");
        await control.setWalletOps({ pkp_id: pkp, denied_ops: [] });
        expect((await control.listWallets()).items[0]?.denied_ops).to.deep.equal([]);
        await expectSigned(bot, pkp);
        await control.setWalletOps({ pkp_id: pkp, denied_ops: PKP_OP_NAMES });
        expect((await control.listWallets()).items[0]?.denied_ops).to.deep.equal(PKP_OP_NAMES);
      });

      it("an unknown op is refused, and denies nothing", async () => {
        const { control, pkp } = await make();
        const unknown = control.setWalletOps({ pkp_id: pkp, denied_ops: ["signMassage" as "signMessage"] });
        expect((await refusal(unknown)).code).to.be.oneOf(["invalid_body", "invalid_value", "invalid_argument"]);
        expect((await control.listWallets()).items[0]?.denied_ops).to.deep.equal([]);
      });
    });
  }

  it("each op of a PKP separately, on every curve, while all others still work", async () => {
    const { client } = await makeAccount(stack().baseUrl);
    const { pkp, group } = await makeGroup(client);
    for (const code of [EVERY_OP, SEALED]) {
      await client.addActionToGroup({ group_id: group, action_ipfs_cid: await client.getActionIpfsId(code) });
    }
    const { client: bot } = await makeUsageKey(client, stack().baseUrl, { execute_in_groups: [group] });
    const { response: ciphertext } = await bot.runAction({ code: SEALED, js_params: { pkpId: pkp } });
    const run = (only?: string) => bot.runAction({ code: EVERY_OP, js_params: { pkpId: pkp, ciphertext, only } });
    const ends = (denied: readonly string[]) =>
      Object.fromEntries(PKP_OP_NAMES.map((op) => [op, denied.includes(op) ? "permission_denied" : "done"]));
    expect((await run()).response).to.deep.equal(ends([]));
    for (const op of PKP_OP_NAMES) {
      await client.setWalletOps({ pkp_id: pkp, denied_ops: [op] });
      expect((await run()).response, op).to.deep.equal(ends([op]));
      expect((await run(op)).error, op).to.include({ code: "permission_denied" });
    }
    await client.setWalletOps({ pkp_id: pkp, denied_ops: PKP_OP_NAMES });
    expect((await run()).response).to.deep.equal(ends(PKP_OP_NAMES));
  });

  it("in a frozen account no usage key writes, and its owner still does", async () => {
    const { control, bot } = await inApiMode();
    await control.freezeAccount();
    expect(await refused(bot.addGroup({ group_name: "g", group_description: "" }))).to.equal("403 account_frozen");
    await (control as Client).addGroup({ group_name: "g", group_description: "" });
    expect((await bot.listGroups()).total).to.equal(2);
  });

  it("a revoked key stays revoked, whoever repeats the call that created it", async () => {
    const { wallet, owner } = await freshOwner();
    const { minted } = await owner.mintUsageKey();
    const attach = await owner.prepare.attachUsageKey(minted, { ...NO_RIGHTS });
    const update = await owner
      .send(attach)
      .then(() => owner.prepare.updateUsageApiKey({ ...NO_RIGHTS, usage_api_key: minted.api_key_hash }));
    await owner.removeUsageApiKey({ usage_api_key: minted.api_key_hash });
    expect((await refusal(owner.send(attach))).code).to.equal("key_revoked");
    expect((await refusal(owner.send(update))).code).to.equal("unknown_usage_key");
    await wallet
      .sendTransaction({ ...owner.transaction(attach), gasLimit: 500_000 })
      .then((sent) => sent.wait().catch(() => undefined));
    expect((await contract().getKey(minted.api_key_hash)).live).to.equal(false);
  });

  it("a queued batch for a Safe holds revocation and transfer of ownership together", async () => {
    const { owner, wallet } = await freshOwner();
    const key = await owner.createUsageKey({ ...NO_RIGHTS });
    const next = Wallet.createRandom().address;
    const { prepare } = owner;
    const writes = [
      await prepare.freezeAccount(),
      await prepare.revokeAllUsageApiKeys(),
      await prepare.transferOwnership({ new_owner_address: next }),
    ];
    expect(owner.safeFile(writes, { name: "hand over" }).transactions).to.have.length(3);
    await owner.send(prepare.batch(writes));
    const account = await contract().getAccount(owner.accountId);
    expect([account.adminWalletAddress, account.frozen, account.usageApiKeyCount]).to.deep.equal([next, true, 0n]);
    expect((await contract().getKey(key.api_key_hash)).live).to.equal(false);
    expect(
      (
        await refusal(
          createChainSecuredClient({ baseUrl: stack().baseUrl, signer: wallet }).then((old) => old.unfreezeAccount()),
        )
      ).code,
    ).to.equal("not_authorized");
  });

  it("a key whose id another wallet registers first is minted again, unnoticed by the caller", async () => {
    const { owner } = await freshOwner();
    const stranger = await freshOwner();
    const seen: string[] = [];
    const key = await owner.createUsageKey(
      { ...NO_RIGHTS },
      {
        onProgress: async (progress) => {
          if (progress.step !== "minted" || seen.push(progress.minted.api_key_hash) > 2) return;
          const args = [
            stranger.owner.accountId,
            progress.minted.api_key_hash,
            0,
            0,
            "",
            "",
            false,
            false,
            false,
            [],
            [],
            [],
            [],
          ] as const;
          await (
            await contract()
              .connect(stranger.wallet)
              .setUsageApiKey(...(args as unknown as Parameters<ReturnType<typeof contract>["setUsageApiKey"]>))
          ).wait();
        },
      },
    );
    expect(seen).to.have.length(3);
    expect(key.api_key_hash).to.equal(seen[2]);
    expect((await contract().getKey(key.api_key_hash)).accountId).to.equal(BigInt(owner.accountId));
  });

  it(
    "a PKP's address that another account registers first can still be registered, and " +
      "signs for its own account only",
    async () => {
      const { owner } = await freshOwner();
      const stranger = await freshOwner();
      const minted = await owner.mintPkp();
      const path = `0x01${"ab".repeat(15)}${stranger.owner.accountId.slice(-32)}`;
      await (
        await contract()
          .connect(stranger.wallet)
          .registerWalletDerivation(stranger.owner.accountId, minted.wallet_address, path, "", "")
      ).wait();
      await owner.registerPkp(minted);
      const botOf = async (who: ChainSecuredClient) => {
        const { group_id } = await who.addGroup({
          group_name: "g",
          group_description: "",
          pkp_ids_permitted: [minted.wallet_address],
        });
        for (const code of [SIGN, SEAL])
          await who.addActionToGroup({ group_id, action_ipfs_cid: await who.getActionIpfsId(code) });
        const { usage_api_key: apiKey } = await who.createUsageKey({ ...NO_RIGHTS, execute_in_groups: [group_id] });
        return createClient({ baseUrl: stack().baseUrl, apiKey });
      };
      await expectSigned(await botOf(owner), minted.wallet_address);
      const thief = await botOf(stranger.owner);
      for (const code of [SIGN, SEAL]) {
        const run = await thief.runAction({
          code,
          js_params: { pkpId: minted.wallet_address, message: "m", op: "Encrypt" },
        });
        expect(run.error?.code).to.equal("permission_denied");
      }
    },
  );
});
