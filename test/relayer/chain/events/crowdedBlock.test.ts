/** Anybody can have the contract log more in one block than endpoints return: no account's events wait for ever. */
import { mock } from "node:test";
import { expect } from "chai";
import { sql } from "kysely";
import { RpcError } from "../../../../protocol/rpc/errors";
import type { RpcCall, RpcResult } from "../../../../protocol/rpc/endpoint";
import type { Store } from "../../../../relayer/store";
import { FINALITY_DEPTH, FollowedChain, randomHash, type LogFilter } from "../../../support/followedChain";
import { openTestStore } from "../../../support/testStore";

const REFUSED: RpcResult = { error: new RpcError("rate_limited", "query returned more than 10000 results") };
const CROWD = 3;

describe("a block with more of the contract's logs than endpoints return", function () {
  this.timeout(60_000);
  let store: Store;
  let chain: FollowedChain;
  let crowded: number;
  before(async () => (store = await openTestStore()));
  after(() => store?.close());

  beforeEach(async () => {
    await sql`delete from chain_events`.execute(store.db);
    await sql`delete from followed_blocks`.execute(store.db);
    chain = new FollowedChain();
    chain.mine(group());
    crowded = chain.mine(...Array.from({ length: CROWD }, group));
    chain.mine(group());
  });

  const group = (): readonly [string, ...unknown[]] => ["GroupAdded", randomHash(), 1, "", "", 1];
  /** Endpoints refuse all that has the block's logs, and some more. */
  const refuse = (more: (call: RpcCall) => RpcResult | undefined = () => undefined): void => {
    chain.instead = (call) =>
      call.method === "eth_getLogs" && chain.isAbout(crowded, call.params[0] as LogFilter) ? REFUSED : more(call);
  };
  const noReceipts = ({ method }: RpcCall): RpcResult | undefined =>
    method === "eth_getBlockReceipts" ? { value: null } : undefined;

  async function failure(following: Promise<void>): Promise<string> {
    return following.then(
      () => "none",
      (error: unknown) => String(error),
    );
  }

  async function found(): Promise<readonly [position: number, events: number]> {
    const { rows } = await sql<{ position: number; events: number }>`
      select (select max(number) from followed_blocks) as position, count(*)::int4 as events from chain_events
    `.execute(store.db);
    return [rows[0]?.position ?? -1, rows[0]?.events ?? -1];
  }

  it("is read by its receipts near the head, and again once it is final", async () => {
    refuse();
    const follower = chain.follower(store.db);
    await follower.follow();
    expect(await found()).to.deep.equal([3, CROWD + 2]);
    chain.mineEmpty(2 * FINALITY_DEPTH);
    chain.mine(group());
    await follower.follow();
    expect(await found()).to.deep.equal([12, CROWD + 3]);
  });

  it("is read by its receipts by a relayer that finds it final", async () => {
    chain.mineEmpty(2 * FINALITY_DEPTH);
    refuse();
    await chain.follower(store.db).follow();
    expect(await found()).to.deep.equal([11, CROWD + 2]);
  });

  it("is read once the endpoints answer again, if neither way works for a moment", async () => {
    const follower = chain.follower(store.db);
    await follower.follow();
    chain.mineEmpty(FINALITY_DEPTH);
    // A node that does not have the block says that there are none, and the bloom is too full to show that it is wrong.
    chain.instead = ({ method, params }) => {
      if (method === "eth_getLogs") return "blockHash" in (params[0] as LogFilter) ? { value: [] } : REFUSED;
      return noReceipts({ method, params });
    };
    expect(await failure(follower.follow())).to.not.equal("none");
    expect((await found())[0]).to.equal(3);
    chain.instead = () => undefined;
    await follower.follow();
    expect((await found())[0]).to.equal(3 + FINALITY_DEPTH);
  });

  describe("of which no receipts are returned either", () => {
    beforeEach(() => mock.timers.enable({ apis: ["Date"], now: Date.now() }));
    afterEach(() => mock.timers.reset());

    it("keeps what was read near the head, after a minute, with a warning", async () => {
      const follower = chain.follower(store.db);
      await follower.follow();
      chain.mineEmpty(FINALITY_DEPTH);
      refuse(noReceipts);
      expect(await failure(follower.follow())).to.not.equal("none");
      expect(chain.warnings).to.deep.equal([]);
      mock.timers.tick(61_000);
      await follower.follow();
      expect(await found()).to.deep.equal([3 + FINALITY_DEPTH, CROWD + 2]);
      expect(chain.warnings).to.have.length(1);
      expect(chain.warnings[0]).to.include({ block: crowded });
    });

    it("is not passed over by a relayer that knows nothing of it", async () => {
      chain.mineEmpty(2 * FINALITY_DEPTH);
      refuse(noReceipts);
      const follower = chain.follower(store.db);
      for (let turn = 0; turn < 3; turn++) {
        expect(await failure(follower.follow())).to.not.equal("none");
        mock.timers.tick(61_000);
      }
      expect((await found())[0]).to.be.below(crowded);
    });
  });
});
