/**
 * The allow-list step against the real contract on a real node. The application id measured into the quote is the
 * contract's address, as in dstack.
 */
import { expect } from "chai";
import { toBeHex } from "ethers";
import { verifyService, type Report, type Step, type VerifyOptions } from "../../../client/verify";
import { defaultAppCompose } from "../../../scripts/dev/tee/appCompose";
import { composeHash } from "../../../protocol/attestation";
import { ApplicationAllowlist__factory, type ApplicationAllowlist } from "../../../typechain-types";
import {
  CHAIN_ID,
  giveContract,
  imagesOf,
  KEY_PROVIDER,
  SOURCE_COMPOSE,
  startAttestedService,
  type AttestedService,
} from "../../support/attestedService";
import { startTestChain, type TestChain } from "../../support/chain";

const DELAY_SECONDS = 3 * 24 * 3600;
const ANY_DEVICE = toBeHex(0, 32);
const COMPOSE_HASH = `0x${composeHash(defaultAppCompose())}`;

describe("the allow-list step", () => {
  let chain: TestChain;
  let allowlist: ApplicationAllowlist;
  let address: string;
  let service: AttestedService;

  const verify = (options: VerifyOptions): Promise<Report> =>
    verifyService(service.baseUrl, {
      ca: service.evidences.certificatePem,
      collateral: service.agent.platform.collateral,
      trustedRoot: service.agent.platform.rootDer,
      measurements: {
        mrtd: service.agent.measurements.mrtd.toString("hex"),
        rtmr0: service.agent.measurements.rtmrs[0].toString("hex"),
        rtmr1: service.agent.measurements.rtmrs[1].toString("hex"),
        rtmr2: service.agent.measurements.rtmrs[2].toString("hex"),
      },
      keyProvider: KEY_PROVIDER.id,
      builtImages: imagesOf(service),
      composeFile: SOURCE_COMPOSE,
      ...options,
    });
  const step = async (options: { rpcUrl?: string; allowlist?: string } = {}): Promise<Step | undefined> =>
    (await verify({ rpcUrl: chain.rpcUrl, ...options })).steps.find(({ id }) => id === "allowlist");

  before(async function () {
    this.timeout(60_000);
    chain = await startTestChain();
    allowlist = await new ApplicationAllowlist__factory(chain.deployer).deploy(
      await chain.deployer.getAddress(),
      DELAY_SECONDS,
      [],
      [ANY_DEVICE],
    );
    await allowlist.waitForDeployment();
    address = await allowlist.getAddress();
    await giveContract(chain);
    service = await startAttestedService({ says: "dstack", agent: { appId: Buffer.from(address.slice(2), "hex") } });
  });
  after(async () => {
    await service?.stop();
    await chain?.stop();
  });

  it("fails for an image that is not listed; no other step fails", async () => {
    const report = await verify({ rpcUrl: chain.rpcUrl });
    expect(
      report.steps.filter(({ status }) => status !== "passed").map(({ id, status }) => [id, status]),
    ).to.deep.equal([["allowlist", "failed"]]);
    expect(report.exitCode).to.equal(1);
    expect((await step())?.detail).to.contain("not on the allow-list");
  });

  it("fails for an image that is listed but not yet active", async () => {
    await (await allowlist.addComposeHash(COMPOSE_HASH)).wait();
    expect(await step()).to.include({
      status: "failed",
      detail: "the contract does not allow this compose hash: The compose hash is listed but does not count yet.",
    });
  });

  it("passes once the delay is over; with every other step passed, this is the only success", async () => {
    await chain.provider.send("evm_increaseTime", [DELAY_SECONDS]);
    await chain.provider.send("evm_mine", []);
    const report = await verify({ rpcUrl: chain.rpcUrl });
    expect(
      report.steps.filter(({ status }) => status !== "passed"),
      JSON.stringify(report.steps),
    ).to.deep.equal([]);
    expect(report).to.include({ outcome: "verified", exitCode: 0 });
    expect(report.steps.find(({ id }) => id === "allowlist")?.detail).to.equal(`allowed by ${address}`);
  });

  it("tells how long an added image waits, and which others may have the keys now", async () => {
    const HASHES = [`0x${"0a".repeat(32)}`, `0x${"0b".repeat(32)}`] as const;
    const facts = async (list = address): Promise<Report> => {
      const { timestamp: nowSeconds = 0 } = (await chain.provider.getBlock("latest")) ?? {};
      return verify({ rpcUrl: chain.rpcUrl, allowlist: list, nowSeconds });
    };
    await (await allowlist.addComposeHash(HASHES[0])).wait();
    expect((await facts()).notes.at(-1)).to.equal(
      `an image added to the allow-list waits ${DELAY_SECONDS} s; besides this image it allows no other`,
    );
    await chain.provider.send("evm_increaseTime", [DELAY_SECONDS]);
    await (await allowlist.addComposeHash(HASHES[1])).wait();
    const { notes, warnings } = await facts();
    expect(notes.at(-1)).to.contain(`it allows ${HASHES[0]}`);
    expect(warnings.filter((warning) => warning.includes("allow-list"))).to.deep.equal([]);
    const admin = await chain.deployer.getAddress();
    const hasty = await new ApplicationAllowlist__factory(chain.deployer).deploy(
      admin,
      0,
      [COMPOSE_HASH],
      [ANY_DEVICE],
    );
    await hasty.waitForDeployment();
    expect((await facts(await hasty.getAddress())).warnings.join()).to.contain("allow-list delay 0: an image that");
    // Answers any call with true and an empty reason.
    const silent = "0x00000000000000000000000000000000000000aa";
    await chain.provider.send("anvil_setCode", [silent, "0x6001600052604060205260606000f3"]);
    expect((await facts(silent)).warnings.join()).to.contain("allow-list delay unknown");
  });

  it("fails as soon as the image is removed from the list", async () => {
    await (await allowlist.removeComposeHash(COMPOSE_HASH)).wait();
    expect(await step()).to.include({ status: "failed" });
  });

  it("fails where there is no contract, and where another contract is", async () => {
    expect((await step({ allowlist: "0x00000000000000000000000000000000000000ff" }))?.detail).to.contain(
      "there is no allow-list contract",
    );
    expect((await step({ allowlist: chain.contractAddress }))?.status).to.equal("failed");
    expect((await step({ allowlist: "nonsense" }))?.status).to.equal("failed");
  });

  it("is not checked without an RPC endpoint of the user, or when that endpoint does not answer", async () => {
    expect((await verify({})).steps.find(({ id }) => id === "allowlist")).to.include({ status: "not_checked" });
    expect(await step({ rpcUrl: "http://127.0.0.1:1" })).to.include({ status: "not_checked" });
  });

  it("is not checked by an endpoint of another chain, where there may be no contract or another one", async () => {
    await chain.provider.send("anvil_setChainId", [1]);
    try {
      expect(await step()).to.include({
        status: "not_checked",
        detail:
          "the allow-list's chain could not be queried: the RPC endpoint is of chain 1, the contract is on chain 31337",
      });
    } finally {
      await chain.provider.send("anvil_setChainId", [CHAIN_ID]);
    }
  });

  it("uses the measured application id: the service cannot choose another one", async () => {
    service.tamper("/info", (body) => body.replace(address.slice(2).toLowerCase(), "00".repeat(20)));
    const report = await verify({ rpcUrl: chain.rpcUrl });
    expect(report.steps.find(({ id }) => id === "composeHash")?.status).to.equal("failed");
    expect(report.steps.find(({ id }) => id === "allowlist")?.detail).not.to.contain("0x0000000000");
    service.honest();
  });
});
