/** The budget of new accounts, when requests are repeated. */
import { expect } from "chai";
import { randomUUID } from "node:crypto";
import { Wallet } from "ethers";
import { ChainBed } from "../../support/chainBed";
import { signedForward } from "../../support/forwards";
import { Api, codeOf, type HttpAnswer } from "../../support/http";
import { startRelayerBed, UNLIMITED, type RelayerBed } from "../../support/relayerBed";

/** Of eight a day, what one address gets at once. */
const [PER_DAY, BUDGET] = [8, 3];
const ACCOUNT = { account_name: "a", account_description: "" };

describe("new accounts of one address", function () {
  this.timeout(120_000);
  let bed: ChainBed;
  let relayer: RelayerBed;
  let api: Api;
  before(async () => {
    bed = await ChainBed.start();
    relayer = await startRelayerBed({ chain: bed, store: {}, limits: { ...UNLIMITED, mintsPerDay: PER_DAY } });
    api = new Api(relayer.baseUrl);
  });
  after(async () => {
    await relayer?.stop();
    await bed?.stop();
  });

  const create = (key: string): Promise<HttpAnswer> =>
    api.post("/new_account", ACCOUNT, { headers: { "idempotency-key": key } });

  it("counts a request once however often it is repeated, and an invalid one never", async () => {
    const key = randomUUID();
    for (let i = 0; i < 2 * BUDGET; i++) expect((await create(key)).status).to.equal(200);
    for (let i = 0; i < BUDGET; i++) expect((await api.post("/new_account", { account_name: 1 })).status).to.equal(422);
    const request = await signedForward(api, Wallet.createRandom(), "newChainSecuredAccount", ["mine", ""]);
    for (let i = 0; i < 2 * BUDGET; i++) expect((await api.post("/relay", request)).status).to.equal(200);
    expect((await api.post("/new_account", { ...ACCOUNT, email: null })).status).to.equal(200);
    expect(codeOf(await create(randomUUID()))).to.equal("rate_limited");
  });
});
