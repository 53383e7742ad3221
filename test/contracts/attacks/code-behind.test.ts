// The contract delegates unknown calls to code that runs on its own storage. That code must use the same slots, be what
// was compiled, and have no effect when called directly; the code that answers lists must not be able to write.
import { expect } from "chai";
import { artifacts, ethers } from "hardhat";
import type { FunctionFragment } from "ethers";
import { PARTS, compiled, instructions, layoutOf, withoutImmutables } from "../support/code";
import { twoAccounts } from "../support/stages";
import { staged } from "../support/world";
import { must } from "../../support/must";

const OUTSIDE = { CREATE: 0xf0, CALL: 0xf1, CALLCODE: 0xf2, CREATE2: 0xf5, STATICCALL: 0xfa, SELFDESTRUCT: 0xff };
const WRITING = {
  SSTORE: 0x55,
  TSTORE: 0x5d,
  LOG0: 0xa0,
  LOG1: 0xa1,
  LOG2: 0xa2,
  LOG3: 0xa3,
  LOG4: 0xa4,
  DELEGATECALL: 0xf4,
  ...OUTSIDE,
};

const instructionsOf = async (name: string): Promise<Map<number, number>> =>
  instructions(ethers.getBytes((await artifacts.readArtifact(name)).deployedBytecode));

/** The addresses of the parts: each is the first contract created by the previous one. */
async function addressesOf(manager: { getAddress: () => Promise<string> }): Promise<string[]> {
  const from = await manager.getAddress();
  const payers = ethers.getCreateAddress({ from, nonce: 1 });
  return [from, payers, ethers.getCreateAddress({ from: payers, nonce: 1 })];
}

describe("The code behind the contract", () => {
  it("uses the same slots: the compiler gives all parts the same storage layout", async () => {
    const [first, ...rest] = await Promise.all(PARTS.map(async (name) => layoutOf(await compiled(name))));
    expect(JSON.parse(must(first))).to.have.length.greaterThan(3);
    for (const layout of rest) expect(layout).to.equal(first);
  });

  it("has no instruction in lists that writes, logs, creates, calls or self-destructs", async () => {
    const found = await instructionsOf("AccountLists");
    for (const [name, op] of Object.entries(WRITING)) expect(found.get(op) ?? 0, name).to.equal(0);
    for (const { type, name, stateMutability } of (await artifacts.readArtifact("AccountLists"))
      .abi as FunctionFragment[]) {
      if (type === "function") expect(stateMutability, name).to.equal("view");
    }
  });

  it("calls only the next part: the payers' code has one DELEGATECALL and no other call", async () => {
    const found = await instructionsOf("ApiPayers");
    for (const [name, op] of Object.entries(OUTSIDE)) expect(found.get(op) ?? 0, name).to.equal(0);
    expect(found.get(WRITING.DELEGATECALL)).to.equal(1);
  });

  it("implements every function of the interface exactly once, over all parts", async () => {
    const whole = (await compiled("IAccountManager", "contracts/interfaces/IAccountManager.sol")).evm.methodIdentifiers;
    const parts = await Promise.all(
      PARTS.map(async (name) => Object.keys((await compiled(name)).evm.methodIdentifiers)),
    );
    const known = ["isTrustedForwarder(address)"]; // of OpenZeppelin's ERC2771Context
    expect(parts.flat().sort()).to.deep.equal([...Object.keys(whole), ...known].sort());
  });

  it("is what was compiled, created by the constructor", async () => {
    const { world } = await staged(twoAccounts);
    const addresses = await addressesOf(world.manager);
    for (const [i, name] of PARTS.entries()) {
      const output = await compiled(name);
      const deployed = await ethers.provider.getCode(must(addresses[i]));
      expect(withoutImmutables(deployed, output) === output.evm.deployedBytecode.object, name).to.equal(true);
    }
  });

  it("has no admin and no storage of its own", async () => {
    const { world } = await staged(twoAccounts);
    const [, payersAt, listsAt] = await addressesOf(world.manager);
    const { admin, stranger, payer } = world.cast;
    const writes: [string, string[]][] = [
      ["addApiPayer", [stranger.address]],
      ["removeApiPayer", [payer.address]],
      ["setAdminApiPayer", [stranger.address]],
      ["cancelAdminApiPayer", []],
      ["proposeAdmin", [stranger.address]],
      ["cancelAdminProposal", []],
    ];
    const behind = await ethers.getContractAt("ApiPayers", must(payersAt));
    for (const caller of [admin, stranger]) {
      for (const [name, args] of writes) {
        await expect(
          behind
            .connect(caller)
            .getFunction(name)
            .send(...args),
          name,
        ).to.be.revertedWithCustomError(behind, "NotAdmin");
      }
      await expect(behind.connect(caller).getFunction("acceptAdmin").send()).to.be.revertedWithCustomError(
        behind,
        "NotPendingAdmin",
      );
    }
    for (const address of [must(payersAt), must(listsAt)]) {
      for (let slot = 0; slot < 16; slot++)
        expect(BigInt(await ethers.provider.getStorage(address, slot)), `slot ${slot}`).to.equal(0n);
    }
  });
});
