// ApplicationAllowlist
// ├── entries of the deployment are active at once; later ones after the delay, to the second
// ├── adding a listed entry changes nothing: its activation time stays
// ├── a removed entry is inactive at once, and waits again when added again
// ├── device zero means any device, with the same delay
// ├── only the admin writes; the admin changes in two steps
// ├── the lists can be rebuilt from the events
// └── supports dstack's interface (ERC-165)
import { loadFixture, time } from "@nomicfoundation/hardhat-network-helpers";
import { expect } from "chai";
import fc from "fast-check";
import { ethers } from "hardhat";
import type { HardhatEthersSigner } from "@nomicfoundation/hardhat-ethers/signers";
import type { ApplicationAllowlist } from "../../typechain-types";
import { count, SEED } from "../support/counts";
import { must } from "../support/must";

const DELAY = 7n * 24n * 3600n;
const [FIRST, SECOND, THIRD] = ["first", "second", "third"].map((name) => ethers.sha256(ethers.toUtf8Bytes(name))) as [
  string,
  string,
  string,
];
const [DEVICE, OTHER_DEVICE] = [ethers.id("device"), ethers.id("other device")] as [string, string];
const ANY_DEVICE = ethers.ZeroHash;

const bootInfo = (composeHash: string, deviceId: string) => ({
  appId: ethers.ZeroAddress,
  composeHash,
  instanceId: ethers.ZeroAddress,
  deviceId,
  mrAggregated: ethers.ZeroHash,
  mrSystem: ethers.ZeroHash,
  osImageHash: ethers.ZeroHash,
  tcbStatus: "UpToDate",
  advisoryIds: ["INTEL-SA-00001"],
});

async function deployed() {
  const [admin, next, stranger] = (await ethers.getSigners()) as [
    HardhatEthersSigner,
    HardhatEthersSigner,
    HardhatEthersSigner,
  ];
  const list = (await ethers.deployContract("ApplicationAllowlist", [
    admin.address,
    DELAY,
    [FIRST],
    [DEVICE],
  ])) as unknown as ApplicationAllowlist;
  return { list, admin, next, stranger };
}

const ask = async (list: ApplicationAllowlist, composeHash: string, deviceId = DEVICE) =>
  Array.from(await list.isAppAllowed(bootInfo(composeHash, deviceId)));
const YES = [true, ""];
const WAITS = [false, "The compose hash is listed but does not count yet."];
const UNKNOWN = [false, "The compose hash is not on the allow-list."];
const WRONG_DEVICE = [false, "The device is not on the allow-list."];

describe("ApplicationAllowlist", () => {
  it("allows at once what was given at deployment, and nothing else", async () => {
    const { list } = await loadFixture(deployed);
    expect(await ask(list, FIRST)).to.deep.equal(YES);
    expect(await ask(list, SECOND)).to.deep.equal(UNKNOWN);
    expect(await ask(list, FIRST, OTHER_DEVICE)).to.deep.equal(WRONG_DEVICE);
    expect(await ask(list, ethers.ZeroHash)).to.deep.equal(UNKNOWN);
    expect(await list.delaySeconds()).to.equal(DELAY);
  });

  it("activates an added compose hash at the second the event names, not one earlier", async () => {
    const { list } = await loadFixture(deployed);
    const { timestamp } = must(await (await list.addComposeHash(SECOND)).getBlock());
    const activeFrom = BigInt(timestamp) + DELAY;
    expect(
      await list.queryFilter(list.filters.ComposeHashAdded(SECOND)).then((logs) => must(logs[0]).args.activeFrom),
    ).to.equal(activeFrom);
    await time.increaseTo(activeFrom - 1n);
    expect(await ask(list, SECOND)).to.deep.equal(WAITS);
    await time.increaseTo(activeFrom);
    expect(await ask(list, SECOND)).to.deep.equal(YES);
    expect(await ask(list, FIRST)).to.deep.equal(YES);
  });

  it("keeps the activation time of an entry that is added again, and emits nothing", async () => {
    const { list } = await loadFixture(deployed);
    await list.addComposeHash(SECOND);
    const before = await list.composeHashes();
    await time.increase(1000);
    for (const hash of [FIRST, SECOND])
      expect(must(await (await list.addComposeHash(hash)).wait()).logs).to.deep.equal([]);
    expect(must(await (await list.addDevice(DEVICE)).wait()).logs).to.deep.equal([]);
    expect(await list.composeHashes()).to.deep.equal(before);
  });

  it("removes an entry at once, and delays it again when it is added again", async () => {
    const { list } = await loadFixture(deployed);
    await expect(list.removeComposeHash(FIRST)).to.emit(list, "ComposeHashRemoved").withArgs(FIRST);
    expect(await ask(list, FIRST)).to.deep.equal(UNKNOWN);
    await expect(list.removeComposeHash(FIRST))
      .to.be.revertedWithCustomError(list, "UnknownComposeHash")
      .withArgs(FIRST);
    await list.addComposeHash(FIRST);
    expect(await ask(list, FIRST)).to.deep.equal(WAITS);
    await list.removeComposeHash(FIRST);
    await time.increase(DELAY * 2n);
    expect(await ask(list, FIRST)).to.deep.equal(UNKNOWN);
  });

  it("applies the same rules to devices; zero means any", async () => {
    const { list } = await loadFixture(deployed);
    await list.addDevice(ANY_DEVICE);
    expect(await ask(list, FIRST, OTHER_DEVICE)).to.deep.equal(WRONG_DEVICE);
    await time.increase(DELAY);
    expect(await ask(list, FIRST, OTHER_DEVICE)).to.deep.equal(YES);
    await expect(list.removeDevice(ANY_DEVICE)).to.emit(list, "DeviceRemoved").withArgs(ANY_DEVICE);
    expect(await ask(list, FIRST, OTHER_DEVICE)).to.deep.equal(WRONG_DEVICE);
    expect(await ask(list, FIRST, DEVICE)).to.deep.equal(YES);
    await expect(list.removeDevice(OTHER_DEVICE))
      .to.be.revertedWithCustomError(list, "UnknownDevice")
      .withArgs(OTHER_DEVICE);
  });

  it("refuses a compose hash of zero, an admin of zero, and a delay beyond the maximum", async () => {
    const { list, admin } = await loadFixture(deployed);
    const factory = await ethers.getContractFactory("ApplicationAllowlist");
    await expect(list.addComposeHash(ethers.ZeroHash)).to.be.revertedWithCustomError(list, "ZeroComposeHash");
    await expect(factory.deploy(ethers.ZeroAddress, DELAY, [], [])).to.be.revertedWithCustomError(list, "ZeroAddress");
    await expect(factory.deploy(admin.address, DELAY, [ethers.ZeroHash], [])).to.be.revertedWithCustomError(
      list,
      "ZeroComposeHash",
    );
    const max = 365n * 24n * 3600n;
    await expect(factory.deploy(admin.address, max + 1n, [], []))
      .to.be.revertedWithCustomError(list, "DelayTooLong")
      .withArgs(max + 1n, max);
    await factory.deploy(admin.address, max, [], []);
  });

  it("lets only the admin write: every mutating function, every caller", async () => {
    const { list, admin, next, stranger } = await loadFixture(deployed);
    await list.proposeAdmin(next.address);
    const rows: Record<string, { args: unknown[]; admin: string; next: string; stranger: string }> = {
      addComposeHash: { args: [THIRD], admin: "ok", next: "NotAdmin", stranger: "NotAdmin" },
      removeComposeHash: { args: [FIRST], admin: "ok", next: "NotAdmin", stranger: "NotAdmin" },
      addDevice: { args: [OTHER_DEVICE], admin: "ok", next: "NotAdmin", stranger: "NotAdmin" },
      cancelAdminProposal: { args: [], admin: "ok", next: "NotAdmin", stranger: "NotAdmin" },
      removeDevice: { args: [DEVICE], admin: "ok", next: "NotAdmin", stranger: "NotAdmin" },
      proposeAdmin: { args: [stranger.address], admin: "ok", next: "NotAdmin", stranger: "NotAdmin" },
      acceptAdmin: { args: [], admin: "NotPendingAdmin", next: "ok", stranger: "NotPendingAdmin" },
    };
    const writes = list.interface.fragments.filter(
      (f) => f.type === "function" && !(f as InstanceType<typeof ethers.FunctionFragment>).constant,
    );
    expect(Object.keys(rows).sort()).to.deep.equal(
      writes.map((f) => (f as InstanceType<typeof ethers.FunctionFragment>).name).sort(),
    );
    for (const [name, row] of Object.entries(rows)) {
      for (const [who, signer] of Object.entries({ admin, next, stranger })) {
        const call = list
          .connect(signer)
          .getFunction(name)
          .staticCall(...row.args);
        const wanted = row[who as "admin"];
        if (wanted === "ok") await call;
        else
          await expect(call, `${name} by ${who}`).to.be.revertedWithCustomError(list, wanted).withArgs(signer.address);
      }
    }
  });

  it("changes its admin in two steps", async () => {
    const { list, admin, next, stranger } = await loadFixture(deployed);
    await expect(list.proposeAdmin(ethers.ZeroAddress)).to.be.revertedWithCustomError(list, "ZeroAddress");
    await expect(list.proposeAdmin(stranger.address)).to.emit(list, "AdminProposed").withArgs(stranger.address);
    await list.proposeAdmin(next.address);
    await expect(list.connect(stranger).acceptAdmin()).to.be.revertedWithCustomError(list, "NotPendingAdmin");
    await expect(list.connect(next).acceptAdmin()).to.emit(list, "AdminChanged").withArgs(admin.address, next.address);
    await expect(list.addComposeHash(THIRD)).to.be.revertedWithCustomError(list, "NotAdmin");
    await list.connect(next).addComposeHash(THIRD);
    expect([await list.admin(), await list.pendingAdmin()]).to.deep.equal([next.address, ethers.ZeroAddress]);
  });

  it("supports the interface that dstack's key management queries", async () => {
    const { list } = await loadFixture(deployed);
    // An ERC-165 interface id is the XOR of all selectors; here there is one.
    const appAuth = list.interface.getFunction("isAppAllowed").selector;
    const erc165 = list.interface.getFunction("supportsInterface").selector;
    for (const id of [appAuth, erc165]) expect(await list.supportsInterface(id)).to.equal(true);
    for (const id of ["0xffffffff", "0x00000000"]) expect(await list.supportsInterface(id)).to.equal(false);
  });

  it("random histories: the lists equal the events, and an entry is active exactly from its second", async () => {
    const { list } = await loadFixture(deployed);
    const call = fc.tuple(
      fc.constantFrom("addComposeHash", "removeComposeHash", "addDevice", "removeDevice"),
      fc.constantFrom(FIRST, SECOND, THIRD),
      fc.constantFrom(1n, 1000n, DELAY / 2n),
    );
    const history = fc.asyncProperty(fc.array(call, { minLength: 12, maxLength: 30 }), async (calls) => {
      for (const [name, value, later] of calls) {
        await list
          .getFunction(name)(value)
          .catch(() => undefined); // removing an entry that is not listed reverts
        await time.increase(later);
      }
      const maps = { ComposeHash: new Map<string, bigint>(), Device: new Map<string, bigint>() };
      for (const log of await list.queryFilter("*" as never)) {
        const event = must(list.interface.parseLog(log as never));
        const map = maps[event.name.replace(/Added|Removed/, "") as "Device"];
        if (event.name.endsWith("Added")) map.set(event.args[0] as string, event.args[1] as bigint);
        else map?.delete(event.args[0] as string);
      }
      const listed = async (entries: Promise<ApplicationAllowlistEntries>) =>
        new Map((await entries).map(({ value, activeFrom }) => [value, activeFrom]));
      expect(await listed(list.composeHashes())).to.deep.equal(maps.ComposeHash);
      expect(await listed(list.devices())).to.deep.equal(maps.Device);
      const now = BigInt(must(await ethers.provider.getBlock("latest")).timestamp);
      for (const value of [FIRST, SECOND, THIRD]) {
        expect(await list.isComposeHashAllowed(value)).to.equal((maps.ComposeHash.get(value) ?? now + 1n) <= now);
        expect(await list.isDeviceAllowed(value)).to.equal((maps.Device.get(value) ?? now + 1n) <= now);
      }
    });
    await fc.assert(history, { numRuns: count(8, 100), seed: SEED });
  }).timeout(count(60_000, 600_000));
});

type ApplicationAllowlistEntries = Awaited<ReturnType<ApplicationAllowlist["composeHashes"]>>;
