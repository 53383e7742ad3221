/** `POST /relay` used to make the service or another account pay. */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { Wallet, type HDNodeWallet } from "ethers";
import { KeywrightError } from "../../../protocol/errors";
import type { SignedForwardRequest } from "../../../protocol/forwardShape";
import { packedAccountId, type AccountId, type Address } from "../../../protocol/ids";
import { ERC2771Forwarder__factory, AccountManager__factory } from "../../../typechain-types";
import { ChainBed } from "../../support/chainBed";
import { endWrite } from "../../support/endedWrite";
import { signedForward, type ForwardOverrides } from "../../support/forwards";
import { Api, codeOf, type HttpAnswer } from "../../support/http";
import { startRelayerBed, UNLIMITED, type RelayerBed } from "../../support/relayerBed";

const ABI = AccountManager__factory.createInterface();
const RIVAL = 8;
const FREE_WRITES_PER_DAY = 3;

describe("POST /relay", function () {
  this.timeout(120_000);
  let bed: ChainBed;
  let relayer: RelayerBed;
  let api: Api;
  before(async () => {
    bed = await ChainBed.start();
    await bed.setBalance(RIVAL, 10n ** 18n);
    const limits = { ...UNLIMITED, freeWritesPerDay: FREE_WRITES_PER_DAY };
    relayer = await startRelayerBed({ chain: bed, store: {}, creditsEveryAccount: false, limits });
    api = new Api(relayer.baseUrl);
  });
  after(async () => {
    await relayer?.stop();
    await bed?.stop();
  });
  afterEach(() => bed.proxy.heal());

  const idOf = ({ address }: HDNodeWallet): AccountId => packedAccountId(address as Address);
  const balanceOf = async (id: AccountId): Promise<number> => (await relayer.credits.accounts.balance(id)).balanceCents;
  const relay = async (
    wallet: HDNodeWallet,
    name: string,
    args: unknown[],
    overrides: ForwardOverrides = {},
  ): Promise<HttpAnswer> => api.post("/relay", await signedForward(api, wallet, name, args, overrides));

  describe("without credit", () => {
    let owner: HDNodeWallet;
    let id: AccountId;
    before(async () => {
      owner = Wallet.createRandom();
      id = idOf(owner);
      expect((await relay(owner, "newChainSecuredAccount", ["mine", ""])).status).to.equal(200);
      const submissionId = randomBytes(16).toString("hex");
      await relayer.credits.reservations.reserveWrite({ accountId: id, submissionId, cents: await balanceOf(id) });
      await endWrite({ db: relayer.store.db, credits: relayer.credits }, submissionId, true);
      expect(await balanceOf(id)).to.equal(0);
    });
    const freezing = (count: number): string[] =>
      Array.from({ length: count }, (_, index) => ABI.encodeFunctionData("setAccountFrozen", [id, index % 2 === 0]));

    it("freezes the account, alone and with a few other such calls", async () => {
      expect((await relay(owner, "setAccountFrozen", [id, true])).status).to.equal(200);
      expect((await relay(owner, "multicall", [freezing(4)])).status).to.equal(200);
      expect(await balanceOf(id)).to.equal(0);
    });

    it("does not execute many such calls, or one with a high gas limit, for free", async () => {
      const refused = [
        await relay(owner, "multicall", [freezing(64)], { gas: "1400000" }),
        await relay(owner, "setAccountFrozen", [id, false], { gas: "8000000" }),
      ];
      expect(refused.map((answer) => [answer.status, codeOf(answer)])).to.deep.equal(
        Array(2).fill([402, "insufficient_credit"]),
      );
    });

    it("does so a few times a day; writes without effect do not count", async () => {
      bed.executor.failing.set("signForwards", new KeywrightError("not_authorized", "Not signed."));
      expect((await relay(owner, "setAccountFrozen", [id, true])).status).to.equal(403);
      bed.executor.failing.clear();
      // Two were executed above.
      expect((await relay(owner, "setAccountFrozen", [id, false])).status).to.equal(200);
      const refused = await relay(owner, "setAccountFrozen", [id, true]);
      expect([refused.status, codeOf(refused)]).to.deep.equal([429, "rate_limited"]);
      const other = Wallet.createRandom();
      expect((await relay(other, "newChainSecuredAccount", ["other", ""])).status).to.equal(200);
      expect((await relay(other, "setAccountFrozen", [idOf(other), true])).status).to.equal(200);
    });
  });

  it("gives an account its sign-up credit also when another sender creates it first", async () => {
    const owner = Wallet.createRandom();
    const signed = await signedForward(api, owner, "newChainSecuredAccount", ["mine", ""]);
    const forwarder = await bed.contract.trustedForwarder();
    bed.proxy.injectTimes(1, "eth_sendRawTransaction", async () => {
      const other = ERC2771Forwarder__factory.connect(forwarder, bed.executor.wallet(RIVAL).connect(bed.provider));
      await (await other.execute(signed as unknown as SignedForwardRequest, { gasLimit: 1_200_000 })).wait();
      return undefined;
    });
    const answer = await api.post("/relay", signed);
    expect([answer.status, codeOf(answer)]).to.deep.equal([409, "forward_nonce_used"]);
    const granted = await balanceOf(idOf(owner));
    expect(granted).to.be.greaterThan(0);
    expect(codeOf(await relay(owner, "newChainSecuredAccount", ["again", ""]))).to.equal("account_id_taken");
    expect(await balanceOf(idOf(owner)), "once").to.equal(granted);
  });

  it("gives no sign-up credit to a signer whose account another wallet owns", async () => {
    const [owner, other] = [Wallet.createRandom(), Wallet.createRandom()];
    expect((await relay(owner, "newChainSecuredAccount", ["mine", ""])).status).to.equal(200);
    expect((await relay(owner, "transferOwnership", [idOf(owner), other.address])).status).to.equal(200);
    const before = await balanceOf(idOf(owner));
    expect(codeOf(await relay(owner, "newChainSecuredAccount", ["again", ""]))).to.equal("account_id_taken");
    expect(await balanceOf(idOf(owner))).to.equal(before);
  });
});
