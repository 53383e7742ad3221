/** How CI's check for known vulnerabilities evaluates npm's report. */
import { expect } from "chai";

interface Advisory {
  advisory: string;
  package: string;
  title: string;
}
interface Audit {
  severeAdvisories(report: object): Advisory[];
  problemWith(advisory: Advisory, exceptions: object[], today: string): string | undefined;
}

const url = (id: string): string => `https://github.com/advisories/${id}`;
const REPORT = {
  vulnerabilities: {
    ws: { via: [{ name: "ws", title: "crash by many headers", severity: "high", url: url("GHSA-1") }] },
    // One package that only depends on the other, and one advisory that is not severe.
    ethers: { via: ["ws"] },
    elliptic: { via: [{ name: "elliptic", title: "length of signatures", severity: "low", url: url("GHSA-2") }] },
  },
};

describe("the audit of production packages", () => {
  const audit = async (): Promise<Audit> => (await import("../../scripts/audit.mjs" as string)) as Audit;

  it("reports severe advisories, each once", async () => {
    const { severeAdvisories } = await audit();
    expect(severeAdvisories(REPORT)).to.deep.equal([
      { advisory: "GHSA-1", package: "ws", title: "crash by many headers" },
    ]);
  });

  it("fails on an unexplained one, and on an expired explanation", async () => {
    const { problemWith } = await audit();
    const advisory = { advisory: "GHSA-1", package: "ws", title: "crash by many headers" };
    const exception = { ...advisory, reason: "no server uses ws", since: "2026-01-01", until: "2026-06-30" };
    expect(problemWith(advisory, [], "2026-06-30")).to.equal("GHSA-1 in ws: crash by many headers");
    expect(problemWith(advisory, [{ ...exception, package: "other" }], "2026-06-30")).to.be.a("string");
    expect(problemWith(advisory, [exception], "2026-06-30")).to.equal(undefined);
    expect(problemWith(advisory, [exception], "2026-07-01")).to.equal(
      "GHSA-1 in ws: its exception ran out on 2026-06-30",
    );
  });
});
