import { expect } from "chai";
import { Chain } from "../../../executor/chain/chain";
import { keyNamespaceOf } from "../../../protocol/namespace";
import type { ActionHash, Address, KeyId } from "../../../protocol/ids";
import { RpcDouble } from "../../support/rpcDouble";

const CONTRACT = "0x00000000000000000000000000000000000000C0" as Address;

describe("attack: one answer with an absurd block number", () => {
  it("stops decisions for a minute at most, not until a restart", async () => {
    let nowSeconds = 1_000_000;
    const endpoint = await RpcDouble.start({ keyNamespace: keyNamespaceOf(31_337n, CONTRACT), headTime: nowSeconds });
    const chain = new Chain({
      rpcUrls: [endpoint.url],
      quorum: 1,
      chainId: 31_337n,
      contractAddress: CONTRACT,
      timeoutMs: 300,
      maxHeadAgeSeconds: 60,
      nowSeconds: () => nowSeconds,
    });
    const ask = (): Promise<string> =>
      chain.explain(`0x${"01".repeat(32)}` as KeyId, `0x${"02".repeat(32)}` as ActionHash, undefined).then(
        () => "decided",
        (error: { code: string }) => error.code,
      );
    try {
      expect(await ask()).to.equal("decided");
      endpoint.world.head = 2n ** 60n;
      expect(await ask()).to.equal("decided");
      endpoint.world.head = 101n;
      expect(await ask(), "behind the minimum block").to.equal("chain_unavailable");
      nowSeconds += 59;
      endpoint.world.headTime = nowSeconds;
      expect(await ask(), "still behind the minimum block").to.equal("chain_unavailable");
      nowSeconds += 1;
      expect(await ask(), "no other endpoint confirms it").to.equal("decided");
      endpoint.world.head = 100n;
      expect(await ask(), "and the new minimum applies").to.equal("chain_unavailable");
    } finally {
      await chain.close();
      await endpoint.stop();
    }
  }).timeout(15_000);
});
