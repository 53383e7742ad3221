/** An owner's own reads of groups with their members, from a node that gives a call only so much gas. */
import { expect } from "chai";
import { keccak256, toBeHex } from "ethers";
import { connect } from "../support/chain";
import { ownerBed } from "../support/owners";
import { RpcProxy, type RpcAnswer } from "../support/rpcProxy";

const GAS_OF_A_CALL = 4_000_000;
const ACTIONS = 700;

describe("an owner's groups with their members", () => {
  const { chain, ownerOf, freshOwner } = ownerBed();

  it("are read in calls of a bounded size, also where one group has hundreds", async () => {
    const { wallet, owner } = await freshOwner();
    const hashes = Array.from({ length: ACTIONS }, (_, at) => keccak256(toBeHex(at + 1)));
    await owner.addGroup({ group_name: "few", group_description: "", cid_hashes_permitted: hashes.slice(0, 2) });
    await owner.addGroup({ group_name: "many", group_description: "" });
    const contract = chain().contract.connect(wallet);
    for (let at = 0; at < ACTIONS; at += 140)
      await (await contract.changeGroupMembers(owner.accountId, 2, hashes.slice(at, at + 140), [], [], [])).wait();

    const proxy = await RpcProxy.start(chain().rpcUrl);
    const provider = connect(proxy.url);
    try {
      proxy.inject(async ({ method, params }): Promise<RpcAnswer | undefined> => {
        if (method !== "eth_call") return undefined;
        const call = [{ ...(params[0] as object), gas: toBeHex(GAS_OF_A_CALL) }, params[1]];
        const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: call });
        const headers = { "content-type": "application/json" };
        return (await (await fetch(chain().rpcUrl, { method: "POST", headers, body })).json()) as RpcAnswer;
      });
      const reader = await ownerOf(wallet.connect(provider));
      const all = await reader.listGroups({ members: "true" });
      expect(all.items.map(({ name, action_count }) => [name, action_count])).to.deep.equal([
        ["few", 2],
        ["many", ACTIONS],
      ]);
      expect(all.items[0]?.cid_hashes_permitted).to.deep.equal(hashes.slice(0, 2));
      expect(all.items[1]?.cid_hashes_permitted).to.deep.equal(hashes.slice(0, 100));
      for (const [hash, names] of [
        [hashes[1], ["few", "many"]],
        [hashes[ACTIONS - 1], ["many"]],
      ] as const)
        expect((await reader.listGroups({ hashed_cid: hash ?? "" })).items.map(({ name }) => name)).to.deep.equal(
          names,
        );
    } finally {
      provider.destroy();
      await proxy.stop();
    }
  });
});
