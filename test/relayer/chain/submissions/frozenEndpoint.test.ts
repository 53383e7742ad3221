/** The first endpoint answers at once and as on the right chain, but stands still or keeps what it takes to itself. */
import { expect } from "chai";
import type { AccountId } from "../../../../protocol/ids";
import type { Chain } from "../../../../relayer/chain/types";
import { expectAtRest } from "../../../support/batches";
import { addGroup, ChainBed, eventually, freshAccountId, newAccount } from "../../../support/chainBed";
import { frozen } from "../../../support/laggingNode";
import { RpcProxy } from "../../../support/rpcProxy";

describe("an endpoint that stands still", function () {
  this.timeout(60_000);
  let bed: ChainBed;
  let other: RpcProxy;
  let chain: Chain;
  let account: AccountId;

  before(async () => {
    bed = await ChainBed.start({ payers: 1 });
    other = await RpcProxy.start(bed.node.rpcUrl);
    const tuning = { stillForMs: 1_500, stuckAfterMs: 1_000, finalityDepth: 8 };
    ({ chain } = await bed.open({ tuning, rpcUrls: [bed.proxy.url, other.url] }));
    account = freshAccountId();
    await chain.submit(newAccount(account));
  });
  after(async () => {
    await bed?.stop();
    await other?.stop();
  });
  beforeEach(async () => {
    bed.proxy.heal();
    await bed.followed();
  });

  const mineLater = async (blocks: number): Promise<void> => {
    for (let at = 0; at < blocks; at++) {
      await bed.mine();
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  };

  it("keeps no write from the others, nor events from those who follow, however far the chain goes on", async () => {
    const stands = await bed.provider.getBlockNumber();
    bed.proxy.inject(frozen({ url: bed.node.rpcUrl, stands }));
    const before = await bed.groupCount(account);
    const writing = chain.submit(addGroup(account, "while it stands still"));
    // Beyond what it calls final.
    await mineLater(20);
    await writing;
    expect(await bed.groupCount(account)).to.equal(before + 1);
    await bed.followed();
    await chain.submit(addGroup(account, "afterwards"));
    await expectAtRest(bed, chain);
  });

  it("is asked first again once it moves", async () => {
    await mineLater(15);
    const asked = bed.proxy.count("eth_sendRawTransaction");
    await eventually("the first endpoint takes a write", async () => {
      await chain.submit(addGroup(account, "again"));
      return bed.proxy.count("eth_sendRawTransaction") > asked;
    });
  });

  for (const [what, withheld] of [
    ["and says so", /^eth_(sendRawTransaction|getTransactionByHash)$/],
    ["and says that it does not know it", /^eth_sendRawTransaction$/],
  ] as const)
    it(`keeps no write from the others that it takes to itself ${what}, while it moves on`, async () => {
      const keeps = frozen({ url: bed.node.rpcUrl, stands: Number.MAX_SAFE_INTEGER });
      bed.proxy.inject((call, forward) => (withheld.test(call.method) ? keeps(call, forward) : undefined));
      const before = await bed.groupCount(account);
      await chain.submit(addGroup(account, "withheld"));
      expect(await bed.groupCount(account)).to.equal(before + 1);
    });
});
