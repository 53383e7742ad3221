/** What is wrong with a request is named within a bound: the answer is never larger than the request. */
import { expect } from "chai";
import { KeywrightError } from "../../../protocol/errors";
import { ROUTES, routeOf, type RouteName } from "../../../protocol/http";
import { guardRequest } from "../../../relayer/middleware/guard";
import { expectInTime, itInTime } from "../../support/inTime";
import { withLongText } from "../../support/longText";

describe("a request with many wrong fields", () => {
  const refusalOf = (body: unknown): { detail: string; errors: readonly { field: string; message: string }[] } => {
    try {
      guardRequest(routeOf("newAccount"), { params: {}, query: {}, body });
    } catch (error) {
      if (!(error instanceof KeywrightError)) throw error;
      expect(error.code).to.equal("invalid_body");
      return { detail: error.detail, errors: error.facts["errors"] as { field: string; message: string }[] };
    }
    throw new Error("it was accepted");
  };
  const unknown = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, i) => [`f${i}`, 0]));

  it("is told of each, if they are few", () => {
    const { detail, errors } = refusalOf({ account_name: "a", account_description: "", ...unknown(3) });
    expect(errors.map(({ field }) => field)).to.deep.equal(["f0", "f1", "f2"]);
    expect(detail).to.equal(["f0", "f1", "f2"].map((field) => `${field}: is not a field of this request`).join("; "));
  });

  it("is told of the first ones, and that there are more", () => {
    const { detail, errors } = refusalOf(unknown(49_000));
    expect(errors).to.have.length(64);
    expect(detail.endsWith("; and more")).to.equal(true);
    expect(JSON.stringify({ detail, errors }).length).to.be.below(8_000);
  });

  it("is told the beginning of a name of a megabyte", () => {
    const { detail, errors } = refusalOf({ account_name: "a", account_description: "", ["k".repeat(1_000_000)]: 0 });
    expect(errors.map(({ field }) => field)).to.deep.equal([`${"k".repeat(128)}…`]);
    expect(detail.length).to.be.below(300);
  });
});

describe("a number out of its bounds", () => {
  const codeOf = (name: RouteName, part: "query" | "body", value: object): string | undefined => {
    try {
      guardRequest(routeOf(name), { params: {}, query: {}, body: {}, [part]: value });
      return undefined;
    } catch (error) {
      return error instanceof KeywrightError ? error.code : String(error);
    }
  };

  it("is told apart: a page that is too large, and a size that is none", () => {
    const size = (page_size: string) => codeOf("listGroups", "query", { page_size });
    expect(["1", "0x3e8"].map(size)).to.deep.equal([undefined, undefined]);
    expect(["1001", "9".repeat(20), "9".repeat(77)].map(size)).to.deep.equal(Array<string>(3).fill("page_too_large"));
    expect(["0", "-1", "1e3"].map(size)).to.deep.equal(Array<string>(3).fill("invalid_value"));
  });

  it("is told its bounds, also where it is a JSON number of any size", () => {
    for (const timeout_ms of [0, -1, 1e300, 2 ** 60]) {
      const body = { code: "1", timeout_ms };
      expect(codeOf("runAction", "body", body), `${timeout_ms}`).to.equal("invalid_value");
      expect(() => guardRequest(routeOf("runAction"), { params: {}, query: {}, body })).to.throw(/must be 1 to \d+$/);
    }
    expect(codeOf("runAction", "body", { code: "1", timeout_ms: 1.5 })).to.equal("invalid_body");
  });

  it("of an amount is refused by the amount's own code", () => {
    for (const amount_cents of [499, -1, 100_000_000, 2 ** 60, 1e300])
      expect(codeOf("createPaymentIntent", "body", { amount_cents }), `${amount_cents}`).to.equal(
        "amount_out_of_range",
      );
    expect(codeOf("createPaymentIntent", "body", { amount_cents: 500.5 })).to.equal("invalid_body");
    expect(codeOf("createPaymentIntent", "body", { amount_cents: 500 })).to.equal(undefined);
  });
});

describe("a request with a long text", function () {
  this.timeout(120_000);

  for (const name of Object.keys(ROUTES) as RouteName[])
    itInTime(`holds up no other where it is of ${name}`, async () => {
      const { request } = routeOf(name);
      for (const part of ["params", "query", "body"] as const) {
        const schema = request[part];
        if (schema === undefined) continue;
        for (const value of withLongText(schema)) {
          const before = process.cpuUsage();
          try {
            guardRequest(routeOf(name), { params: {}, query: {}, body: {}, [part]: value });
          } catch (error) {
            expect(error).to.be.instanceOf(KeywrightError);
          }
          const { user } = process.cpuUsage(before);
          expectInTime(user / 1_000, 100, `${part} ${JSON.stringify(value).slice(0, 200)}`);
        }
      }
    });
});
