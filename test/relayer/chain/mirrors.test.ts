/** Each source of the chain's folder has a test at the same path, or a reason to have none. */
import { expect } from "chai";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const SOURCES = join(__dirname, "..", "..", "..", "relayer", "chain");

const TESTED_ELSEWHERE: Readonly<Record<string, string>> = {
  "chain.ts": "puts the parts together: every test with a chain bed runs it whole",
  "index.ts": "names what others may use",
  "settings.ts": "figures only",
  "types.ts": "types only",
  "abi/failures.ts": "submissions/outcomes.test.ts: the reason of each call that failed",
  "events/blockReader.ts": "events/follower.test.ts: what it reads is what the follower keeps",
  "events/members.ts": "the routes of groups and searches ask through it",
  "events/logSource.ts": "test/e2e/triggers.test.ts: triggers fire on what it reads",
  "reads/reads.ts":
    "rpc/client.test.ts asks through it against unequal nodes, abi/views.test.ts holds its " +
    "decoding against the general coder",
  "submissions/batch.ts":
    "submissions/batcher.test.ts and submissions/forwards.test.ts: each write of a batch ends once",
  "submissions/begin.ts": "test/system/turnLocks.test.ts, and submissions/storm.test.ts under two instances",
  "reads/exportWrites.ts": "test/e2e/export.test.ts asks through the route",
  "submissions/parts.ts": "types only",
  "submissions/rows.ts": "reads/submissionView.test.ts: what a caller sees of them",
  "submissions/states.ts": "reads/submissionView.test.ts, and as conditions in every statement of the engine",
  "submissions/transactions.ts":
    "submissions/takeover.test.ts and test/system/killedRelayers.test.ts: each of its changes under two instances",
};

describe("tests of the chain's folder", () => {
  const sources = readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));

  it("mirror its sources", () => {
    const missing = sources.filter(
      (name) => !(name in TESTED_ELSEWHERE) && !existsSync(join(__dirname, name.replace(/\.ts$/, ".test.ts"))),
    );
    expect(missing).to.deep.equal([]);
  });

  it("have no reason for a source that was removed, or that has its test", () => {
    for (const name of Object.keys(TESTED_ELSEWHERE)) {
      expect(sources, name).to.include(name);
      expect(existsSync(join(__dirname, name.replace(/\.ts$/, ".test.ts"))), name).to.equal(false);
    }
  });
});
