// A caller pretends to be another one: through the forwarder, or with a forged suffix. An owner may act by signature;
// payers and the admin act only as senders.
import { expect } from "chai";
import { ethers } from "hardhat";
import type { HardhatEthersSigner } from "@nomicfoundation/hardhat-ethers/signers";
import { packedId } from "../support/model";
import { ALICE_ID, twoAccounts } from "../support/stages";
import { staged, type World } from "../support/world";

const TYPES = {
  ForwardRequest: [
    { name: "from", type: "address" },
    { name: "to", type: "address" },
    { name: "value", type: "uint256" },
    { name: "gas", type: "uint256" },
    { name: "nonce", type: "uint256" },
    { name: "deadline", type: "uint48" },
    { name: "data", type: "bytes" },
  ],
};

/** Signs a call as `from`; another wallet pays for it. */
async function forward({ manager, forwarder, cast }: World, from: HardhatEthersSigner, data: string) {
  const [to, verifyingContract] = [await manager.getAddress(), await forwarder.getAddress()];
  const request = {
    from: from.address,
    to,
    value: 0n,
    gas: 3_000_000n,
    nonce: await forwarder.nonces(from.address),
    deadline: 2n ** 47n,
    data,
  };
  const domain = { name: "Keywright Forwarder", version: "1", chainId: 31_337n, verifyingContract };
  const signature = await from.signTypedData(domain, TYPES, request);
  return forwarder.connect(cast.stranger).execute({ ...request, signature }, { gasLimit: 5_000_000 });
}

const FROZEN = async ({ manager }: World, id: bigint) => (await manager.getAccount(id)).frozen;

describe("Forged senders", () => {
  it("an owner writes by signature, alone and in both batches, and pays no gas", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const { manager, cast } = world;
    const before = await ethers.provider.getBalance(cast.bob.address);
    const freeze = (frozen: boolean) => manager.interface.encodeFunctionData("setAccountFrozen", [bobId, frozen]);
    await forward(world, cast.bob, freeze(true));
    expect(await FROZEN(world, bobId)).to.equal(true);
    await forward(
      world,
      cast.bob,
      manager.interface.encodeFunctionData("multicall", [[freeze(false), freeze(true), freeze(false)]]),
    );
    expect(await FROZEN(world, bobId)).to.equal(false);
    await forward(world, cast.bob, manager.interface.encodeFunctionData("tryMulticall", [[freeze(true)]]));
    expect(await FROZEN(world, bobId)).to.equal(true);
    expect(await ethers.provider.getBalance(cast.bob.address)).to.equal(before);
  });

  it("the signer creates an account of its own, under its own id", async () => {
    const { world } = await staged(twoAccounts);
    const { manager, cast } = world;
    await forward(world, cast.carol, manager.interface.encodeFunctionData("newChainSecuredAccount", ["carol", ""]));
    expect((await manager.getAccount(packedId(cast.carol.address))).adminWalletAddress).to.equal(cast.carol.address);
    const { address } = cast.otherPayer;
    const create = manager.interface.encodeFunctionData("newAccount", [packedId(address), false, "", "", address]);
    await forward(world, cast.otherPayer, create);
    expect((await manager.getAccount(packedId(address))).adminWalletAddress).to.equal(address);
  });

  it("the owner of an API account who converts it to itself by signature converts it", async () => {
    const { world } = await staged(twoAccounts);
    const { manager, cast } = world;
    const { address } = cast.alice;
    const convert = manager.interface.encodeFunctionData("convertToChainSecuredAccount", [ALICE_ID, address]);
    await expect(forward(world, cast.alice, convert)).to.emit(manager, "AccountConvertedToChainSecured");
  });

  it("a payer who asks through the forwarder is no payer", async () => {
    const { world } = await staged(twoAccounts);
    const { manager, forwarder, cast } = world;
    const ask = manager.interface.encodeFunctionData("accountExistsAndIsMutable", [ALICE_ID]);
    const [from, to] = [await forwarder.getAddress(), await manager.getAddress()];
    const answer = await ethers.provider.call({ from, to, data: ethers.concat([ask, cast.payer.address]) });
    expect(BigInt(answer)).to.equal(0n);
    expect(await manager.connect(cast.payer).accountExistsAndIsMutable(ALICE_ID)).to.equal(true);
  });

  it("a refusal names the signer, not the forwarder", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const { manager, forwarder, cast } = world;
    const calls = [
      manager.interface.encodeFunctionData("setAccountFrozen", [bobId, true]),
      manager.interface.encodeFunctionData("newAccount", [1n, true, "", "", cast.carol.address]),
      manager.interface.encodeFunctionData("newAccount", [1n, false, "", "", cast.bob.address]),
    ];
    for (const call of calls) {
      const [from, to] = [await forwarder.getAddress(), await manager.getAddress()];
      await expect(ethers.provider.call({ from, to, data: ethers.concat([call, cast.carol.address]) }))
        .to.be.revertedWithCustomError(manager, "NotAuthorized")
        .withArgs(cast.carol.address);
    }
  });

  it("a suffix from any sender but the forwarder has no effect, alone and in both batches", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const { manager, cast } = world;
    const to = await manager.getAddress();
    const forged = ethers.concat([
      manager.interface.encodeFunctionData("setAccountFrozen", [bobId, true]),
      cast.bob.address,
    ]);
    for (const data of [
      forged,
      manager.interface.encodeFunctionData("multicall", [[forged]]),
      ethers.concat([manager.interface.encodeFunctionData("multicall", [[forged]]), cast.bob.address]),
    ]) {
      await expect(cast.stranger.sendTransaction({ to, data }))
        .to.be.revertedWithCustomError(manager, "NotAuthorized")
        .withArgs(cast.stranger.address);
    }
    await manager.connect(cast.stranger).tryMulticall([forged], { gasLimit: 3_000_000 });
    expect(await FROZEN(world, bobId)).to.equal(false);
  });

  it("a forged suffix of the signer inside a batch has no effect", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const { manager, cast } = world;
    const forged = ethers.concat([
      manager.interface.encodeFunctionData("setAccountFrozen", [bobId, true]),
      cast.bob.address,
    ]);
    await forward(world, cast.carol, manager.interface.encodeFunctionData("tryMulticall", [[forged]]));
    await expect(forward(world, cast.carol, manager.interface.encodeFunctionData("multicall", [[forged]]))).to.be
      .reverted;
    expect(await FROZEN(world, bobId)).to.equal(false);
  });

  it("neither a payer nor the admin acts by signature", async () => {
    const { world } = await staged(twoAccounts);
    const { manager, cast } = world;
    await expect(forward(world, cast.payer, manager.interface.encodeFunctionData("setAccountFrozen", [ALICE_ID, true])))
      .to.be.reverted;
    await expect(
      forward(world, cast.admin, manager.interface.encodeFunctionData("addApiPayer", [cast.stranger.address])),
    ).to.be.reverted;
    expect([await FROZEN(world, ALICE_ID), (await manager.apiPayers()).length]).to.deep.equal([false, 1]);
  });

  it("the forwarder itself can be neither payer, admin nor owner", async () => {
    const { world, bobId } = await staged(twoAccounts);
    const forwarder = await world.forwarder.getAddress();
    for (const name of ["addApiPayer", "setAdminApiPayer", "proposeAdmin"]) {
      expect(await world.call(world.cast.admin, name, [forwarder])).to.equal("ForwarderNotAllowed");
    }
    expect(await world.call(world.cast.bob, "transferOwnership", [bobId, forwarder])).to.equal("ForwarderNotAllowed");
  });
});
