// The code that answers the lists runs on the contract's own storage: it must not be able to write, and must see the same slots.
import { expect } from "chai";
import { artifacts, ethers } from "hardhat";
import { must } from "../../support/must";

const FORBIDDEN = {
  SSTORE: 0x55,
  TSTORE: 0x5d,
  CREATE: 0xf0,
  CALL: 0xf1,
  CALLCODE: 0xf2,
  DELEGATECALL: 0xf4,
  CREATE2: 0xf5,
  STATICCALL: 0xfa,
  SELFDESTRUCT: 0xff,
};
const [LOG0, LOG4, PUSH1, PUSH32] = [0xa0, 0xa4, 0x60, 0x7f];

/** Every instruction of run-time code, the data of pushes and the metadata left out. */
function instructions(code: Uint8Array): Set<number> {
  const found = new Set<number>();
  const metadata = 2 + (must(code[code.length - 2]) << 8) + must(code[code.length - 1]);
  for (let i = 0; i < code.length - metadata; i++) {
    const op = must(code[i]);
    found.add(op);
    if (op >= PUSH1 && op <= PUSH32) i += op - PUSH1 + 1;
  }
  return found;
}

describe("The code behind the lists", () => {
  it("holds no instruction that writes, logs, creates, calls or ends", async () => {
    const found = instructions(ethers.getBytes((await artifacts.readArtifact("AccountLists")).deployedBytecode));
    for (const [name, op] of Object.entries(FORBIDDEN)) expect(found.has(op), name).to.equal(false);
    for (let op = LOG0; op <= LOG4; op++) expect(found.has(op), `LOG${op - LOG0}`).to.equal(false);
  });

  it("declares only views", async () => {
    const { abi } = await artifacts.readArtifact("AccountLists");
    for (const { type, name, stateMutability } of abi as { type: string; name: string; stateMutability?: string }[]) {
      if (type === "function") expect(stateMutability, name).to.equal("view");
    }
  });

  it("is answered for at the one address: every function of the interface", async () => {
    const whole = (await artifacts.readArtifact("IAccountManager")).abi as { type: string; name: string }[];
    const shown = new Set(((await artifacts.readArtifact("AccountManager")).abi as { type: string; name: string }[]).map(({ name }) => name));
    for (const { type, name } of whole) if (type === "function") expect(shown.has(name), name).to.equal(true);
  });
});
