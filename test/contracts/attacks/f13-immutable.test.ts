// F13: the rules change under a user's feet. There is no proxy, no upgrade and no call out; what is deployed is what was compiled.
import { expect } from "chai";
import { artifacts, ethers } from "hardhat";
import { twoAccounts } from "../support/stages";
import { staged } from "../support/world";
import { must } from "../../support/must";

const PUSH1 = 0x60;
const PUSH32 = 0x7f;

function opcodes(code: Uint8Array): Map<number, number> {
  const counts = new Map<number, number>();
  const metadata = 2 + (must(code[code.length - 2]) << 8) + must(code[code.length - 1]);
  for (let i = 0; i < code.length - metadata; i++) {
    const op = must(code[i]);
    counts.set(op, (counts.get(op) ?? 0) + 1);
    if (op >= PUSH1 && op <= PUSH32) i += op - PUSH1 + 1;
  }
  return counts;
}

describe("F13 nobody can change the rules", () => {
  it("the contract calls nobody but itself (both batches) and its lists, creates nothing and cannot be destroyed", async () => {
    const counts = opcodes(ethers.getBytes((await artifacts.readArtifact("AccountManager")).deployedBytecode));
    const forbidden = { CALL: 0xf1, CALLCODE: 0xf2, STATICCALL: 0xfa, CREATE: 0xf0, CREATE2: 0xf5, SELFDESTRUCT: 0xff };
    for (const [name, op] of Object.entries(forbidden)) expect(counts.get(op) ?? 0, name).to.equal(0);
    expect(counts.get(0xf4), "DELEGATECALL").to.equal(3);
  });

  it("the deployed code is the compiled code with its constants in it, and the namespace is the one promised", async () => {
    const { world } = await staged(twoAccounts);
    const address = await world.manager.getAddress();
    const { chainId } = await ethers.provider.getNetwork();
    const types = ["string", "uint256", "address"];
    const namespace = ethers.keccak256(ethers.AbiCoder.defaultAbiCoder().encode(types, ["keywright/v1", chainId, address]));
    expect(await world.manager.keyNamespace()).to.equal(namespace);
    const deployed = await ethers.provider.getCode(address);
    const name = "contracts/AccountManager.sol:AccountManager";
    const output = must(await artifacts.getBuildInfo(name)).output.contracts["contracts/AccountManager.sol"]?.AccountManager;
    const compiled = must(output).evm.deployedBytecode;
    const code = Buffer.from(deployed.slice(2), "hex");
    for (const places of Object.values(must(compiled.immutableReferences))) for (const { start, length } of places) code.fill(0, start, start + length);
    expect(code.toString("hex") === compiled.object).to.equal(true);
    expect(code.length).to.be.lessThan(24_576);
  });

  it("takes no ether and answers no call it does not know", async () => {
    const { world } = await staged(twoAccounts);
    const to = await world.manager.getAddress();
    await expect(world.cast.alice.sendTransaction({ to, value: 1n })).to.be.reverted;
    await expect(world.cast.alice.sendTransaction({ to, data: "0x12345678" })).to.be.reverted;
  });
});
