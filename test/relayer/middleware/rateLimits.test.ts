/** Rate limits: per address (IPv6 by /64), in total, per key; in memory and in the store. */
import { expect } from "chai";
import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { KeywrightError } from "../../../protocol/errors";
import { clientGroup, clientNetworks } from "../../../protocol/clientGroup";
import { hashedAddress, RequestLimits, type Shared } from "../../../relayer/middleware/rateLimits";
import type { Db } from "../../../relayer/store/database";
import { storeCounts } from "../../../relayer/store/mintCounts";
import { fleetingLimiter, storeLimiter } from "../../../relayer/store/rateLimits";
import { sharedStore } from "../../support/store";

const FEW = {
  addressRequestsPerSecond: 2,
  unknownCredentialsPerMinutePerAddress: 2,
  heavyPerMinutePerAddress: 2,
  paymentIntentsPerMinute: 2,
  mintsPerMinutePerAddress: 2,
  mintsPerDay: 16,
  freeWritesPerDay: 2,
  freeChangesPerDay: 2,
  keyRequestsPerSecond: 2,
};

const sharedBy = (db: Db, relayers: number): Shared => ({
  budgets: storeLimiter(db),
  rates: fleetingLimiter(db),
  mints: storeCounts(db),
  instances: () => relayers,
});

async function refusal(act: () => Promise<unknown>): Promise<KeywrightError | undefined> {
  try {
    await act();
  } catch (error) {
    if (error instanceof KeywrightError) return error;
    throw error;
  }
  return undefined;
}

describe("rate limits", () => {
  it("count an IPv6 customer by its /64, and an IPv4 address in either notation as one", () => {
    expect(clientGroup("2001:db8:1:2:3:4:5:6")).to.equal(clientGroup("2001:db8:1:2:ffff::1"));
    expect(clientGroup("2001:db8:1:2::1")).to.not.equal(clientGroup("2001:db8:1:3::1"));
    expect(clientGroup("::ffff:203.0.113.7")).to.equal("203.0.113.7");
    expect(clientGroup("203.0.113.7")).to.not.equal(clientGroup("203.0.113.8"));
    expect(clientGroup("not an address")).to.equal("unknown");
  });

  it("know the networks that contain an address", () => {
    expect(clientNetworks("203.0.113.7")).to.deep.equal(["203.0.113.7", "cb0071/24", "cb00/16"]);
    expect(clientNetworks("2001:db8:1:2:3:4:5:6")).to.deep.equal([
      "20010db800010002/64",
      "20010db8000100/56",
      "20010db80001/48",
      "20010db8/32",
    ]);
    expect(clientNetworks("not an address")).to.deep.equal(["unknown"]);
  });

  for (const where of ["memory", "store"] as const) {
    describe(`in ${where}`, () => {
      const open = async (limits = FEW): Promise<RequestLimits> => {
        if (where === "memory") return new RequestLimits(limits);
        return new RequestLimits(limits, sharedBy((await sharedStore()).db, 1));
      };

      it("mints beyond the limit are refused with the seconds to wait", async () => {
        const [limits, address] = [await open(), randomUUID()];
        await limits.mintBy(address);
        await limits.mintBy(address);
        const refused = await refusal(() => limits.mintBy(address));
        expect(refused?.code).to.equal("rate_limited");
        expect(refused?.retryAfterSeconds).to.be.within(50, 60);
        expect(await refusal(() => limits.mintBy(randomUUID())), "another address").to.equal(undefined);
      });

      it("of twenty concurrent requests exactly the limit passes", async () => {
        const [limits, address] = [await open(), randomUUID()];
        const outcomes = await Promise.all(Array.from({ length: 20 }, () => refusal(() => limits.mintBy(address))));
        expect(outcomes.filter((outcome) => outcome === undefined)).to.have.length(2);
      });
    });
  }

  it("in the store apply across several relayers and restarts", async () => {
    const { db } = await sharedStore();
    const [one, other] = [new RequestLimits(FEW, sharedBy(db, 2)), new RequestLimits(FEW, sharedBy(db, 2))];
    const address = randomUUID();
    await one.mintBy(address);
    await other.mintBy(address);
    expect((await refusal(() => one.mintBy(address)))?.code).to.equal("rate_limited");
  });

  it("of writes without credit are each account's, for a day; a write without effect does not count", async () => {
    const limits = new RequestLimits(FEW);
    const takeBack = await limits.freeWrite("poor");
    await takeBack();
    await limits.freeWrite("poor");
    await limits.freeWrite("poor");
    const refused = await refusal(async () => void (await limits.freeWrite("poor")));
    expect(refused?.code).to.equal("rate_limited");
    expect(refused?.retryAfterSeconds).to.be.within(86_000, 86_400);
    await limits.freeWrite("another");
  });

  it("of changes that cost nothing are each credential's, for a day", async () => {
    const limits = new RequestLimits(FEW);
    for (let n = 0; n < FEW.freeChangesPerDay; n++) await limits.freeChange("leaked");
    const refused = await refusal(async () => void (await limits.freeChange("leaked")));
    expect(refused?.code).to.equal("rate_limited");
    expect(refused?.retryAfterSeconds).to.be.within(86_000, 86_400);
    await limits.freeChange("owner");
  });

  it("over all addresses limit what is minted at once", async () => {
    const limits = new RequestLimits(FEW);
    for (let i = 0; i < FEW.mintsPerDay / 2; i++) await limits.mint([`address ${i}`]);
    const refused = await refusal(() => limits.mint(["another"]));
    expect(refused?.code).to.equal("rate_limited");
    expect(refused?.retryAfterSeconds).to.be.within(3 * 3_600 - 10, 3 * 3_600);
  });

  it("in the store keep no address", async () => {
    const { db } = await sharedStore();
    const limits = new RequestLimits(FEW, sharedBy(db, 1));
    const address = "203.0.113.99";
    await limits.mintBy(hashedAddress("key", address));
    const { rows } = await sql<{ key: string }>`select key from rate_limits`.execute(db);
    const ours = rows.filter(({ key }) => key.includes(hashedAddress("key", address)));
    expect(ours).to.have.length(1);
    expect(JSON.stringify(rows)).to.not.include(address);
    expect(hashedAddress("another key", address)).to.not.equal(hashedAddress("key", address));
  });

  it("of invalid credentials count none that was refused before it was looked up", async () => {
    const limits = new RequestLimits(FEW);
    const most = FEW.unknownCredentialsPerMinutePerAddress;
    const outcomes = await Promise.allSettled(
      Array.from({ length: 3 * most }, () => limits.unknownCredential("group")),
    );
    const refunds = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    expect(refunds).to.have.length(most);
    expect((await refusal(() => limits.unknownCredential("group")))?.code).to.equal("rate_limited");
    for (const refund of refunds) refund();
    for (let at = 0; at < most; at++) await limits.unknownCredential("group");
    expect((await refusal(() => limits.unknownCredential("group")))?.code).to.equal("rate_limited");
  });

  it("per key are shared by several relayers, wherever the requests go", async () => {
    const { db } = await sharedStore();
    const limits = { ...FEW, keyRequestsPerSecond: 40 };
    const relayers = Array.from({ length: 3 }, () => new RequestLimits(limits, sharedBy(db, 3)));
    // Some are sequential, so that a slow machine opens a second window at most.
    const started = Date.now();
    const outcomes = await Promise.all(
      relayers.flatMap((relayer) => Array.from({ length: 40 }, () => refusal(() => relayer.requestBy("busy")))),
    );
    const windows = Math.ceil((Date.now() - started) / 1000) + 1;
    const passed = outcomes.filter((outcome) => outcome === undefined).length;
    expect(passed).to.be.within(36, windows === 2 ? 40 : 40 * windows);
    expect(outcomes.every((outcome) => outcome === undefined || outcome.code === "rate_limited")).to.equal(true);
    const [alone] = relayers;
    const pinned = await Promise.all(
      Array.from({ length: 60 }, () => refusal(() => (alone as RequestLimits).requestBy("pinned"))),
    );
    expect(pinned.filter((outcome) => outcome === undefined).length, "through one relayer alone").to.be.within(
      37,
      40 * windows,
    );
  });

  it("per key need no statement at a low rate, and use an equal share without the store", async () => {
    let statements = 0;
    const failing = (): never => {
      statements += 1;
      throw new Error("no store");
    };
    const rates: Shared["rates"] = () => ({ consume: async () => failing() }) as never;
    const limits = new RequestLimits(
      { ...FEW, keyRequestsPerSecond: 40 },
      { budgets: rates, rates, mints: { change: async () => failing() }, instances: () => 2 },
    );
    for (let i = 0; i < 2; i++) await limits.requestBy("quiet");
    expect(statements).to.equal(0);
    const outcomes = await Promise.allSettled(Array.from({ length: 30 }, () => limits.requestBy("busy")));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).to.have.length(20);
  });

  it("per key open again after a second", async () => {
    const limits = new RequestLimits(FEW);
    await limits.requestBy("key");
    await limits.requestBy("key");
    const refused = await refusal(() => limits.requestBy("key"));
    expect(refused?.retryAfterSeconds).to.be.at.most(1);
    expect(await refusal(() => limits.requestBy("other"))).to.equal(undefined);
    await new Promise((resolve) => setTimeout(resolve, 1_050));
    expect(await refusal(() => limits.requestBy("key"))).to.equal(undefined);
  });
});
