/**
 * Near the head an endpoint may say that a block has no logs; once it is final they are found. Whoever replays the list
 * of events then has the chain's state at its end, and so has whoever asks for an account's newest event.
 */
import { mock } from "node:test";
import { expect } from "chai";
import fc from "fast-check";
import { sql } from "kysely";
import { getAddress, zeroPadValue } from "ethers";
import { packedAccountId, type AccountId, type Address } from "../../../../protocol/ids";
import { Events } from "../../../../relayer/chain/events/events";
import { Members } from "../../../../relayer/chain/events/members";
import type { AccountEvent } from "../../../../relayer/chain/types";
import { requireUsableOwner } from "../../../../relayer/ownership";
import type { Store } from "../../../../relayer/store";
import type { Db } from "../../../../relayer/store/database";
import { count, SEED } from "../../../support/counts";
import {
  FINALITY_DEPTH,
  FollowedChain,
  randomHash,
  type LogFilter,
  type MadeEvent,
} from "../../../support/followedChain";
import { refusal } from "../../../support/refusal";
import { bothStores } from "../../../support/simulator/stores";
import { openTestStore } from "../../../support/testStore";

const [ACCOUNT, OTHER, THIRD] = ["a1", "e4", "f5"].map((byte) => `0x${byte.repeat(32)}`) as [
  AccountId,
  AccountId,
  AccountId,
];
const KEY = `0x${"b2".repeat(32)}`;
const DONOR = zeroPadValue("0xd0", 20) as Address;
const VICTIM = getAddress(`0x${"c3".repeat(20)}`) as Address;

describe("events that are found late", function () {
  this.timeout(120_000);
  let store: Store;
  let chain: FollowedChain;
  before(async () => (store = await openTestStore()));
  after(() => store?.close());
  beforeEach(() => anew());

  async function anew(): Promise<void> {
    await sql`delete from chain_events`.execute(store.db);
    await sql`delete from followed_blocks`.execute(store.db);
    chain = new FollowedChain();
  }

  /** Near the head, these blocks seem to have no logs. */
  const hide = (...hidden: readonly number[]): void => {
    chain.instead = ({ method, params }) => {
      const filter = params[0] as LogFilter;
      if (method !== "eth_getLogs" || filter.blockHash === undefined) return undefined;
      return hidden.some((block) => chain.isAbout(block, filter)) ? { value: [] } : undefined;
    };
  };

  async function listed(account: AccountId): Promise<readonly AccountEvent[]> {
    return (await new Events(store.db).page(account, undefined, 1_000, "oldest")).events;
  }

  const nameOf = ({ transactionHash, logIndex }: AccountEvent): string => `${transactionHash} ${logIndex}`;

  /** What a client has that appends each entry, and takes the last such one away at `removed`. */
  function replayed(entries: readonly AccountEvent[]): readonly string[] {
    const kept: string[] = [];
    for (const entry of entries)
      if (entry.removed) kept.splice(kept.lastIndexOf(nameOf(entry)), 1);
      else kept.push(nameOf(entry));
    return kept;
  }

  const onChain = (account: AccountId): readonly string[] =>
    chain.blocks
      .flatMap(({ logs }) => logs)
      .filter(({ topics }) => topics[1] === account)
      .map(({ transactionHash, logIndex }) => `${transactionHash} ${Number(logIndex)}`);

  /** Follows these blocks near the head, of which the first seems empty, and then until all are final. */
  async function foundLate(late: readonly MadeEvent[], ...known: readonly (readonly MadeEvent[])[]): Promise<void> {
    await foundLateIn(store.db, late, ...known);
  }

  async function foundLateIn(
    db: Db,
    late: readonly MadeEvent[],
    ...known: readonly (readonly MadeEvent[])[]
  ): Promise<void> {
    const follower = chain.follower(db);
    hide(chain.mine(...late));
    for (const events of known) chain.mine(...events);
    await follower.follow();
    chain.mineEmpty(FINALITY_DEPTH);
    await follower.follow();
  }

  it("are listed before what followed them on the chain, which is taken back and listed again", async () => {
    const set: MadeEvent = ["UsageApiKeySet", ACCOUNT, KEY, 0, 0, "", "", 0, ACCOUNT];
    const removed: MadeEvent = ["UsageApiKeyRemoved", ACCOUNT, KEY, ACCOUNT];
    await foundLate([set], [], [], [removed]);
    const entries = await listed(ACCOUNT);
    expect(entries.map((event) => `${event.name}${event.removed ? ", removed" : ""}`)).to.deep.equal([
      "UsageApiKeyRemoved",
      "UsageApiKeyRemoved, removed",
      "UsageApiKeySet",
      "UsageApiKeyRemoved",
    ]);
    expect(replayed(entries)).to.deep.equal(onChain(ACCOUNT));
  });

  it("make no act of the donor one of the account's new owner", async () => {
    const created: MadeEvent = ["AccountCreated", ACCOUNT, DONOR, false, "", "", ACCOUNT];
    const given: MadeEvent = ["AccountOwnershipTransferred", ACCOUNT, DONOR, VICTIM, ACCOUNT];
    chain.mine(created);
    await foundLate([["GroupAdded", ACCOUNT, 1, "", "", ACCOUNT]], [given]);
    const events = new Events(store.db);
    expect(await events.isGiven(ACCOUNT, VICTIM)).to.equal(true);
    expect(await events.accountsEverOwnedBy(VICTIM)).to.deep.equal([{ id: ACCOUNT, isGiven: true }]);
  });

  it("bring no member back that left its group later", async () => {
    const pkp = zeroPadValue("0x77", 20);
    await foundLate(
      [["PkpAddedToGroup", ACCOUNT, 1, pkp, ACCOUNT]],
      [["PkpRemovedFromGroup", ACCOUNT, 1, pkp, ACCOUNT]],
    );
    expect((await new Members(store.db).of(ACCOUNT, ["1"])).get("1")).to.deep.equal({ pkps: [], actions: [] });
  });

  it("show whose wallet is an identity's, though its account's creation is not first in the list", async () => {
    const id = packedAccountId(VICTIM);
    await foundLate([["AccountCreated", id, VICTIM, true, "", "", id]], [["GroupAdded", id, 1, "", "", id]]);
    const events = new Events(store.db);
    const reads = {
      events: (of: AccountId, after: string | undefined, limit: number) => events.page(of, after, limit, "oldest"),
      everyPayer: async () => [],
      registrationsOf: async () => [],
    };
    const asked = requireUsableOwner({ chain: reads, executor: undefined as never }, VICTIM, { requestId: "r" });
    expect((await refusal(asked)).code).to.equal("owner_needs_token");
  });

  const group = (account: AccountId): MadeEvent => ["GroupAdded", account, 1, "", "", account];

  it("leave other accounts' events where they are, and those that precede them", async () => {
    chain.mine(group(ACCOUNT));
    await foundLate([group(ACCOUNT), group(OTHER)], [group(ACCOUNT)], [group(THIRD)]);
    expect((await listed(ACCOUNT)).map(({ blockNumber }) => blockNumber)).to.deep.equal([1, 3, 3, 2, 3]);
    expect((await listed(OTHER)).map(({ removed }) => removed)).to.deep.equal([false]);
  });

  it("are listed by the store in memory as by the embedded one", async () => {
    const differences: string[] = [];
    const both = await bothStores((difference) => differences.push(difference));
    chain.mine(group(ACCOUNT));
    // Blocks are stored with the time, which would differ.
    mock.timers.enable({ apis: ["Date"], now: Date.now() });
    try {
      await foundLateIn(both.db, [group(ACCOUNT), group(OTHER)], [group(ACCOUNT)], [group(OTHER), group(THIRD)]);
    } finally {
      mock.timers.reset();
    }
    const { rows } = await sql<{ block_number: number }>`select block_number from chain_events
      where not removed and not retracted order by account_id, cursor`.execute(both.db);
    await both.close();
    expect(differences).to.deep.equal([]);
    expect(rows.map((row) => row.block_number)).to.deep.equal([1, 2, 3, 2, 4, 4]);
  });

  it("are in the chain's order at the end of each account's list, whichever blocks seemed empty and when", async () => {
    const accounts = [ACCOUNT, OTHER, THIRD];
    const block = fc.record({
      events: fc.array(fc.nat(accounts.length - 1), { maxLength: 4 }),
      isHidden: fc.boolean(),
      isFollowed: fc.boolean(),
      isAnew: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(block, { minLength: 1, maxLength: 15 }), async (blocks) => {
        await anew();
        const first = chain.mine() + 1;
        hide(...blocks.flatMap(({ isHidden }, index) => (isHidden ? [first + index] : [])));
        let follower = chain.follower(store.db);
        for (const { events, isFollowed, isAnew } of blocks) {
          chain.mine(...events.map((of): MadeEvent => ["GroupAdded", accounts[of], randomHash(), "", "", 1]));
          if (isAnew) follower = chain.follower(store.db);
          if (isFollowed) await follower.follow();
        }
        chain.mineEmpty(FINALITY_DEPTH);
        await follower.follow();
        for (const account of accounts) expect(replayed(await listed(account))).to.deep.equal(onChain(account));
      }),
      { numRuns: count(40, 1_000), seed: SEED },
    );
  });
});
