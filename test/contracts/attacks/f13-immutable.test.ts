// F13: the rules change after deployment. There is no proxy, no upgrade and no external call; the deployed code is the
// compiled code.
import { expect } from "chai";
import { artifacts, ethers } from "hardhat";
import { instructions } from "../support/code";
import { twoAccounts } from "../support/stages";
import { staged } from "../support/world";

describe("F13 the rules cannot change", () => {
  it(
    "the contract calls only itself (both batches) and its own delegated code, creates " +
      "nothing and cannot self-destruct",
    async () => {
      const counts = instructions(ethers.getBytes((await artifacts.readArtifact("AccountManager")).deployedBytecode));
      const forbidden = {
        CALL: 0xf1,
        CALLCODE: 0xf2,
        STATICCALL: 0xfa,
        CREATE: 0xf0,
        CREATE2: 0xf5,
        SELFDESTRUCT: 0xff,
      };
      for (const [name, op] of Object.entries(forbidden)) expect(counts.get(op) ?? 0, name).to.equal(0);
      expect(counts.get(0xf4), "DELEGATECALL").to.equal(3);
    },
  );

  it("the namespace equals the documented one", async () => {
    const { world } = await staged(twoAccounts);
    const address = await world.manager.getAddress();
    const { chainId } = await ethers.provider.getNetwork();
    const types = ["string", "uint256", "address"];
    const namespace = ethers.keccak256(
      ethers.AbiCoder.defaultAbiCoder().encode(types, ["keywright/v1", chainId, address]),
    );
    expect(await world.manager.keyNamespace()).to.equal(namespace);
  });

  it("accepts no ether and no unknown call", async () => {
    const { world } = await staged(twoAccounts);
    const to = await world.manager.getAddress();
    await expect(world.cast.alice.sendTransaction({ to, value: 1n })).to.be.reverted;
    await expect(world.cast.alice.sendTransaction({ to, data: "0x12345678" })).to.be.reverted;
  });
});
