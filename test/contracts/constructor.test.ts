import { expect } from "chai";
import { ethers } from "hardhat";
import { ANY_PKP } from "./support/state";
import { must } from "../support/must";

const YEAR = 365 * 24 * 3600;
const FIRST_ADMIN = "0x00000000000000000000000000000000000000a1";

const ROOT_COMMITMENT = `0x${"c0".repeat(32)}`;

async function deploy(admin: string, delay: number, forwarder?: string, commitment = ROOT_COMMITMENT) {
  const trusted = forwarder ?? (await ethers.deployContract("ERC2771Forwarder", ["Keywright Forwarder"]));
  const manager = await ethers.deployContract("AccountManager", [admin, delay, trusted, commitment]);
  return { manager, trusted };
}

describe("constructor", () => {
  it("sets the first admin (previous: zero), and stores the delay and the forwarder", async () => {
    const { manager, trusted } = await deploy(FIRST_ADMIN, 60);
    const receipt = must(await manager.deploymentTransaction()?.wait());
    const events = receipt.logs.map((log) => must(manager.interface.parseLog(log)));
    const shown = events.map(({ name, args }) => [
      name,
      ...(args.toArray() as string[]).map((arg) => arg.toLowerCase()),
    ]);
    expect(shown).to.deep.equal([["AdminChanged", ANY_PKP, FIRST_ADMIN]]);
    const whole = await ethers.getContractAt("AccountManager", manager);
    expect((await whole.admin()).toLowerCase()).to.equal(FIRST_ADMIN);
    expect(await whole.payerDelaySeconds()).to.equal(60n);
    expect(await whole.trustedForwarder()).to.equal(
      await (trusted as { getAddress: () => Promise<string> }).getAddress(),
    );
  });

  it("binds the key namespace to version, chain and address", async () => {
    const { manager } = await deploy(FIRST_ADMIN, 0);
    const { chainId } = await ethers.provider.getNetwork();
    const encoded = ethers.AbiCoder.defaultAbiCoder().encode(
      ["string", "uint256", "address"],
      ["keywright/v1", chainId, await manager.getAddress()],
    );
    const whole = await ethers.getContractAt("AccountManager", manager);
    expect(await whole.keyNamespace()).to.equal(ethers.keccak256(encoded));
  });

  it("fixes the commitment to the root key; zero: ZeroRootCommitment", async () => {
    const { manager } = await deploy(FIRST_ADMIN, 0);
    const whole = await ethers.getContractAt("AccountManager", manager);
    expect(await whole.rootCommitment()).to.equal(ROOT_COMMITMENT);
    await expect(deploy(FIRST_ADMIN, 0, undefined, ethers.ZeroHash)).to.be.revertedWithCustomError(
      manager,
      "ZeroRootCommitment",
    );
  });

  it("an admin or a forwarder of zero: ZeroAddress", async () => {
    const { manager } = await deploy(FIRST_ADMIN, 0);
    await expect(deploy(ANY_PKP, 0)).to.be.revertedWithCustomError(manager, "ZeroAddress");
    await expect(deploy(FIRST_ADMIN, 0, ANY_PKP)).to.be.revertedWithCustomError(manager, "ZeroAddress");
  });

  it("the forwarder as admin: ForwarderNotAllowed", async () => {
    const { manager } = await deploy(FIRST_ADMIN, 0);
    await expect(deploy(FIRST_ADMIN, 0, FIRST_ADMIN)).to.be.revertedWithCustomError(manager, "ForwarderNotAllowed");
  });

  it("a delay of a year is accepted, a longer one is refused: DelayTooLong", async () => {
    const { manager } = await deploy(FIRST_ADMIN, YEAR);
    await expect(deploy(FIRST_ADMIN, YEAR + 1))
      .to.be.revertedWithCustomError(manager, "DelayTooLong")
      .withArgs(YEAR + 1, YEAR);
  });
});
