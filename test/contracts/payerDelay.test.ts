// New payers wait once the first managed account exists. Each test has its own contract, with a delay of a minute.
import { time } from "@nomicfoundation/hardhat-network-helpers";
import { expect } from "chai";
import { ANY_PKP } from "./support/state";
import { World, number, walletOf } from "./support/world";

const DELAY = 60;
const PAYER = walletOf("payer");
const OTHER = walletOf("other payer");

/** A contract with one active payer, with a managed account if requested. */
async function started({ managed }: { managed: boolean }): Promise<World> {
  const world = await World.create(DELAY);
  await world.do(world.cast.admin, "addApiPayer", world.cast.payer.address);
  if (managed) await newManaged(world, "first");
  return world;
}

const newManaged = (world: World, name: string, payer = world.cast.payer): Promise<string | undefined> =>
  world.call(payer, "newAccount", [number(name), true, name, "", world.cast.carol.address]);

const scheduled = async ({ manager }: World) =>
  (await manager.scheduledApiPayers()).map(({ payer, activeFrom }) => [payer, activeFrom]);

describe("the delay of payers", () => {
  it("before the first managed account a payer acts at once, with or without unmanaged accounts", async () => {
    const world = await started({ managed: false });
    await world.do(world.cast.bob, "newChainSecuredAccount", "", "");
    await world.do(world.cast.admin, "addApiPayer", world.cast.otherPayer.address);
    expect(await world.manager.scheduledApiPayers()).to.have.length(0);
    expect(await newManaged(world, "second", world.cast.otherPayer)).to.equal(undefined);
  });

  it("after that a payer acts from the last second of the delay, not a second earlier", async () => {
    const world = await started({ managed: true });
    const { admin, payer, otherPayer, carol } = world.cast;
    await world.do(admin, "addApiPayer", otherPayer.address);
    const from = BigInt(await time.latest()) + BigInt(DELAY);
    expect(await scheduled(world)).to.deep.equal([[otherPayer.address, from]]);
    expect(await world.manager.apiPayers()).to.deep.equal([payer.address]);
    const early = [number("early"), true, "", "", carol.address];
    expect(await world.call(otherPayer, "newAccount", early, DELAY - 1)).to.equal("NotAuthorized");
    expect(await newManaged(world, "in time", otherPayer)).to.equal(undefined);
    expect(await scheduled(world)).to.deep.equal([]);
    expect(await world.manager.apiPayers()).to.deep.equal([payer.address, otherPayer.address]);
  });

  it("a payer that is removed and added again waits again", async () => {
    const world = await started({ managed: true });
    const { admin, payer } = world.cast;
    await world.do(admin, "removeApiPayer", payer.address);
    await world.do(admin, "addApiPayer", payer.address);
    expect(await newManaged(world, "second")).to.equal("NotAuthorized");
    await time.increase(DELAY);
    expect(await newManaged(world, "second")).to.equal(undefined);
  });

  it("adding a waiting payer again keeps its time; removing it cancels it", async () => {
    const world = await started({ managed: true });
    await world.do(world.cast.admin, "addApiPayer", PAYER);
    const before = await scheduled(world);
    await world.do(world.cast.admin, "addApiPayer", PAYER);
    expect(await scheduled(world)).to.deep.equal(before);
    await world.do(world.cast.admin, "removeApiPayer", PAYER);
    expect(await scheduled(world)).to.deep.equal([]);
  });

  it("the admin payer: at once before the first managed account, after the delay from then on", async () => {
    const world = await started({ managed: false });
    const { admin } = world.cast;
    await world.do(admin, "setAdminApiPayer", PAYER);
    expect(await world.manager.adminApiPayer()).to.equal(PAYER);
    expect(Array.from(await world.manager.scheduledAdminApiPayer())).to.deep.equal([ANY_PKP, 0n]);
    await newManaged(world, "first");
    await world.do(admin, "setAdminApiPayer", OTHER);
    const from = BigInt(await time.latest()) + BigInt(DELAY);
    expect(await world.manager.adminApiPayer()).to.equal(PAYER);
    expect(Array.from(await world.manager.scheduledAdminApiPayer())).to.deep.equal([OTHER, from]);
    await time.increaseTo(from - 1n);
    expect(await world.manager.adminApiPayer()).to.equal(PAYER);
    await time.increaseTo(from);
    expect(await world.manager.adminApiPayer()).to.equal(OTHER);
    expect(Array.from(await world.manager.scheduledAdminApiPayer())).to.deep.equal([ANY_PKP, 0n]);
  });

  it("a waiting admin payer can be replaced, kept and cancelled, but not once its time has come", async () => {
    const world = await started({ managed: true });
    const { admin } = world.cast;
    await world.do(admin, "setAdminApiPayer", PAYER);
    await world.do(admin, "setAdminApiPayer", OTHER);
    const before = Array.from(await world.manager.scheduledAdminApiPayer());
    await world.do(admin, "setAdminApiPayer", OTHER);
    expect(Array.from(await world.manager.scheduledAdminApiPayer())).to.deep.equal(before);
    await world.do(admin, "cancelAdminApiPayer");
    expect(await world.call(admin, "cancelAdminApiPayer", [])).to.equal("NothingToCancel");
    await world.do(admin, "setAdminApiPayer", OTHER);
    await time.increase(DELAY);
    expect(await world.call(admin, "cancelAdminApiPayer", [])).to.equal("NothingToCancel");
    expect(await world.manager.adminApiPayer()).to.equal(OTHER);
    await world.do(admin, "setAdminApiPayer", OTHER); // already the admin payer: nothing is scheduled
    expect(Array.from(await world.manager.scheduledAdminApiPayer())).to.deep.equal([ANY_PKP, 0n]);
  });
});
