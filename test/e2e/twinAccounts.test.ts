/**
 * Two accounts whose ids share any 1 to 255 bits, at the head or the tail, over HTTP: neither gets a signature of the
 * other's PKP, whether a payer, the contract admin, the forwarder, an owner or a usage key asks.
 */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { Wallet, toBeHex, verifyMessage, type HDNodeWallet, type JsonRpcProvider } from "ethers";
import fc from "fast-check";
import { DEVELOPMENT_DEPLOYER_KEY } from "../../scripts/dev/chain";
import { keyIdOf, packedAccountId, type AccountId, type Address, type ApiKey } from "../../protocol/ids";
import { callExecutor } from "../../scripts/dev/payers";
import { AccountManager__factory, type AccountManager } from "../../typechain-types";
import { connect, fundedWallet } from "../support/chain";
import { SEED, count } from "../support/counts";
import { signedForward } from "../support/forwards";
import { Api, codeOf, members } from "../support/http";
import { useStack } from "../support/stack";

const ANY_PKP = `0x${"0".repeat(40)}`;
const ID_BITS = 256;
const TAIL_BITS = 128;
const SIGN = `async function main({ pkpId }) {
  const given = {};
  for (const [name, ask] of Object.entries({
    signature: () => Actions.signMessage({ pkpId, message: "m" }),
    ed25519: () => Actions.signEd25519({ pkpId, message: "m" }),
    schnorr: () => Actions.signSchnorr({ pkpId, digest: "0x${"11".repeat(32)}" }),
    p256: () => Actions.signP256({ pkpId, message: "m" }),
    privateKey: () => Actions.getPrivateKey({ pkpId }),
  })) try { given[name] = await ask(); } catch (error) {}
  return given;
}`;

interface Party {
  readonly id: string;
  readonly pkp: string;
  readonly path: string;
  readonly key: Api;
}

describe("two accounts whose ids share bits, over HTTP", function () {
  this.timeout(count(240_000, 3_600_000));
  const stack = useStack();
  let provider: JsonRpcProvider;
  let contract: string;
  let api: Api;
  let [owner, payer]: (HDNodeWallet | Wallet)[] = [];
  let victim: Party;
  const as = (wallet: HDNodeWallet | Wallet | undefined): AccountManager =>
    AccountManager__factory.connect(contract, wallet);
  const mined = async (sent: Promise<{ wait(): Promise<unknown> }>): Promise<unknown> => (await sent).wait();
  const holds = (sent: Promise<{ wait(): Promise<unknown> }>): Promise<boolean> =>
    mined(sent).then(
      () => true,
      () => false,
    );

  before(async () => {
    provider = connect(stack().rpcUrl);
    api = new Api(stack().baseUrl);
    contract = String(members(await api.get("/get_node_chain_config"))["contract_address"]);
    [owner, payer] = [await fundedWallet(provider), await fundedWallet(provider, "1000")];
    await mined(as(new Wallet(DEVELOPMENT_DEPLOYER_KEY, provider)).addApiPayer(payer.address));
    await mined(as(owner).newChainSecuredAccount("victim", ""));
    const id = packedAccountId(owner.address as Address);
    victim = await settled(owner, id);
  });
  after(async () => {
    if (payer) await mined(as(new Wallet(DEVELOPMENT_DEPLOYER_KEY, provider)).removeApiPayer(payer.address));
    provider?.destroy();
  });

  /** An account with a PKP of its own, which a key of every scope may use in any action. */
  async function settled(writer: HDNodeWallet | Wallet | undefined, id: string): Promise<Party> {
    const key = await usageKey(writer, id);
    const { walletAddress: pkp, derivationPath: path } = await mintedFor(id);
    await mined(as(writer).registerWalletDerivation(id, pkp, path, "", ""));
    await mined(as(writer).addGroup(id, "", "", [0], [pkp]));
    return { id, pkp, path, key: api.with(key) };
  }

  async function usageKey(writer: HDNodeWallet | Wallet | undefined, id: string): Promise<ApiKey> {
    const key = randomBytes(32).toString("base64") as ApiKey;
    await mined(as(writer).setUsageApiKey(id, keyIdOf(key), 0, 0, "", "", true, true, true, [0], [0], [0], [0]));
    return key;
  }

  const mintedFor = (accountId: string) =>
    callExecutor(stack().executorSocket, "mintPkp", { accountId: accountId as AccountId });

  /** What an action is given that asks for everything of a PKP. */
  async function given(party: Party, pkpId: string): Promise<Record<string, unknown>> {
    const answer = await party.key.post("/run_action", { code: SIGN, js_params: { pkpId } });
    if (answer.status !== 200) expect(answer.status, answer.text).to.be.oneOf([403, 404]);
    return answer.status === 200 ? (members(answer)["response"] as Record<string, unknown>) : {};
  }

  /** Everything that may be tried to use `pkp` of `of` in the account `by`. */
  async function attempts(by: Party, of: Party, writer: HDNodeWallet | Wallet | undefined): Promise<void> {
    await holds(as(writer).addGroup(by.id, "", "", [0], [ANY_PKP]));
    const whole = await holds(as(writer).registerWalletDerivation(by.id, of.pkp, of.path, "", ""));
    const sharesTail = BigInt.asUintN(TAIL_BITS, BigInt(by.id)) === BigInt.asUintN(TAIL_BITS, BigInt(of.id));
    expect(whole, "registered with the same path").to.equal(sharesTail);
    expect(await given(by, of.pkp), "under its whole path").to.deep.equal({});
    // The head of the other's path with the tail that the contract asks for.
    const own = ((BigInt(of.path) >> 128n) << 128n) | BigInt.asUintN(TAIL_BITS, BigInt(by.id));
    await holds(as(writer).registerWalletDerivation(by.id, of.pkp, toBeHex(own, 32), "", ""));
    await holds(as(writer).addGroup(by.id, "", "", [0], [of.pkp]));
    expect(await given(by, of.pkp), "listed").to.deep.equal({});
    const named = await by.key.post(
      "/run_action",
      { code: SIGN, js_params: { pkpId: of.pkp } },
      { headers: { "x-account": of.id } },
    );
    expect(members(named)["response"] ?? {}, "naming the other account").to.deep.equal({});
    // Its own PKP still signs: nothing was refused for another reason.
    const { signature } = await given(by, by.pkp);
    expect(verifyMessage("m", String(signature))).to.equal(by.pkp);
  }

  /** An id that shares exactly this many bits with another one. */
  function twinOf(id: string, shared: number, side: "head" | "tail", differing: bigint): string {
    const first = 1n << BigInt(side === "tail" ? shared : ID_BITS - 1 - shared);
    const rest = side === "tail" ? (differing >> BigInt(shared + 1)) << BigInt(shared + 1) : differing & (first - 1n);
    return toBeHex((BigInt(id) ^ first ^ rest) & ((1n << 256n) - 1n), 32);
  }

  it("a payer and the owner it names, with usage keys of every scope: nothing, in either direction", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: ID_BITS - 1 }),
        fc.constantFrom<"head" | "tail">("head", "tail"),
        fc.bigInt({ min: 0n, max: (1n << 256n) - 1n }),
        async (shared, side, differing) => {
          const id = twinOf(victim.id, shared, side, differing);
          const attacker = await fundedWallet(provider);
          await mined(as(payer).newAccount(id, true, "", "", attacker.address));
          const twin = await settled(payer, id);
          await attempts(twin, victim, payer);
          // The same account with an owner of its own, out of the payer's hands.
          await mined(as(attacker).transferOwnership(id, (await fundedWallet(provider)).address));
          expect(await given(twin, victim.pkp), "ChainSecured").to.deep.equal({});
          expect(await given(victim, twin.pkp), "by the victim").to.deep.equal({});
        },
      ),
      {
        seed: SEED,
        numRuns: count(10, 80),
        endOnFailure: true,
        examples: [128, 160, 192, 255].flatMap((shared) => [
          [shared, "tail", 0n],
          [shared, "head", 0n],
        ]),
      },
    );
    const { signature } = await given(victim, victim.pkp);
    expect(verifyMessage("m", String(signature))).to.equal(victim.pkp);
  });

  it("the admin as a payer, and anybody through the forwarder: not a write to the victim's account", async () => {
    const admin = new Wallet(DEVELOPMENT_DEPLOYER_KEY, provider);
    await mined(as(admin).addApiPayer(admin.address));
    const stranger = await fundedWallet(provider);
    for (const attacker of [admin, payer, stranger]) {
      expect(await holds(as(attacker).addGroup(victim.id, "", "", [0], [ANY_PKP], { gasLimit: 500_000 }))).to.equal(
        false,
      );
      if (!attacker) throw new Error("the attackers are there once the tests run");
      const relayed = await api.post(
        "/relay",
        await signedForward(api, attacker, "addGroup", [victim.id, "", "", [0], []]),
      );
      expect([relayed.status, codeOf(relayed)]).to.deep.equal([403, "not_authorized"]);
      const forged = await signedForward(api, attacker, "addGroup", [victim.id, "", "", [0], []], {
        from: String(owner?.address),
      });
      expect((await api.post("/relay", forged)).status).to.be.within(400, 499);
    }
    await mined(as(admin).removeApiPayer(admin.address));
  });
});
