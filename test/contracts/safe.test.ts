// A multisig as owner: the published Safe contracts, deployed on the test node, create and run a ChainSecured account,
// and take one over.

import { expect } from "chai";
import { ethers } from "hardhat";
import type { BaseContract, Contract } from "ethers";
import type { HardhatEthersSigner } from "@nomicfoundation/hardhat-ethers/signers";
import { packedId } from "./support/model";
import { ALICE_ID, executeKey, twoAccounts } from "./support/stages";
import { cid, number, pathFor, staged, walletOf, type World } from "./support/world";
import { safeArtifact } from "../support/safe";

const SAFE = safeArtifact("Safe.sol");
const FACTORY = safeArtifact("proxies/SafeProxyFactory.sol");
const ZERO = ethers.ZeroAddress;

async function safeOf(owners: HardhatEthersSigner[], threshold: number): Promise<Contract> {
  const [deployer] = owners;
  const deploy = async (artifact: { abi: unknown[]; bytecode: string }): Promise<BaseContract> =>
    (await new ethers.ContractFactory(artifact.abi as never, artifact.bytecode, deployer).deploy()).waitForDeployment();
  const [singleton, factory] = [await deploy(SAFE), (await deploy(FACTORY)) as Contract];
  const addresses = owners.map((owner) => owner.address);
  const setup = new ethers.Interface(SAFE.abi as never).encodeFunctionData("setup", [
    addresses,
    threshold,
    ZERO,
    "0x",
    ZERO,
    ZERO,
    0,
    ZERO,
  ]);
  const create = factory.getFunction("createProxyWithNonce");
  const args = [await singleton.getAddress(), setup, 1n] as const;
  const proxy = (await create.staticCall(...args)) as string;
  await (await create.send(...args)).wait();
  return new ethers.Contract(proxy, SAFE.abi as never, deployer);
}

async function stage() {
  const { world } = await twoAccounts();
  const { alice, carol, stranger } = world.cast;
  const safe = await safeOf([alice, carol, stranger], 2);
  return { world, safe, id: packedId(await safe.getAddress()), signers: [alice, carol] };
}

/** Signs a call with enough owners; any account sends it. */
async function execute(
  world: World,
  safe: Contract,
  signers: HardhatEthersSigner[],
  name: string,
  args: readonly unknown[],
): Promise<boolean> {
  const data = world.manager.interface.encodeFunctionData(name as "multicall", args as never);
  const fields = [await world.manager.getAddress(), 0n, data, 0, 0n, 0n, 0n, ZERO, ZERO] as const;
  const hash = ethers.getBytes(
    (await safe.getFunction("getTransactionHash")(...fields, await safe.getFunction("nonce")())) as string,
  );
  const sorted = [...signers].sort((a, b) => (BigInt(a.address) < BigInt(b.address) ? -1 : 1));
  // Safe takes signatures of the personal-message form when v is 4 higher.
  const signatures = await Promise.all(sorted.map(async (signer) => bumped(await signer.signMessage(hash))));
  const sent = (await safe.getFunction("execTransaction")(...fields, ethers.concat(signatures))) as {
    wait(): Promise<{ status: number | null }>;
  };
  return (await sent.wait()).status === 1;
}

function bumped(signature: string): string {
  const { r, s, v } = ethers.Signature.from(signature);
  return ethers.concat([r, s, ethers.toBeHex(v + 4)]);
}

describe("A Safe as owner", () => {
  it("creates a ChainSecured account and manages it: PKP, group, key, revocation", async () => {
    const { world, safe, id, signers } = await staged(stage);
    const { manager } = world;
    const [pkp, key] = [walletOf("safe's pkp"), number("safe's key")];
    const run = (name: string, ...args: unknown[]) => execute(world, safe, signers, name, args);
    expect(await run("newChainSecuredAccount", "treasury", "of three")).to.equal(true);
    const account = await manager.getAccount(id);
    expect([account.adminWalletAddress, account.managed, account.name]).to.deep.equal([
      await safe.getAddress(),
      false,
      "treasury",
    ]);

    const encode = (name: string, args: readonly unknown[]) =>
      manager.interface.encodeFunctionData(name as "multicall", args as never);
    const batch = [
      encode("registerWalletDerivation", [id, pkp, pathFor(id, "pkp"), "hot", ""]),
      encode("addGroup", [id, "payments", "", [cid(1)], [pkp]]),
      encode("setUsageApiKey", executeKey(id, key, [1n])),
    ];
    expect(await run("multicall", batch)).to.equal(true);
    expect(await manager.canUseWalletInAction(key, cid(1), pkp)).to.equal(true);
    expect(await run("removeUsageApiKey", id, key)).to.equal(true);
    expect(await manager.canUseWalletInAction(key, cid(1), pkp)).to.equal(false);
  });

  it("takes over a managed account; afterwards only its signers have rights", async () => {
    const { world, safe, signers } = await staged(stage);
    const { manager, cast } = world;
    await manager.connect(cast.payer).transferOwnership(ALICE_ID, await safe.getAddress());
    expect((await manager.getAccount(ALICE_ID)).managed).to.equal(false);
    for (const [signer, error] of [
      [cast.alice, "NotAuthorized"],
      [cast.carol, "NotAuthorized"],
      [cast.payer, "AccountChainSecured"],
    ] as const) {
      await expect(manager.connect(signer).removeGroup(ALICE_ID, 1)).to.be.revertedWithCustomError(manager, error);
    }
    expect(await execute(world, safe, signers, "removeGroup", [ALICE_ID, 1n])).to.equal(true);
    expect((await manager.getAccount(ALICE_ID)).groupCount).to.equal(0n);
  });

  it("does nothing with too few signatures", async () => {
    const { world, safe, signers } = await staged(stage);
    await expect(execute(world, safe, signers.slice(0, 1), "newChainSecuredAccount", ["", ""])).to.be.reverted;
  });
});
