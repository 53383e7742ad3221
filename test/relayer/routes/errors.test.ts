/** One list of names: Solidity error → API code → section of docs/errors.md, without gaps. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { ERRORS, RUN_ERROR_CODES, codeOfSolidityError, type ErrorCode } from "../../../protocol/errors";
import { ROUTE_NAMES, errorsOf, problemType, routeOf } from "../../../protocol/http";
import { AccountManager__factory } from "../../../typechain-types";

const docs = readFileSync(join(__dirname, "../../../docs/errors.md"), "utf8");
const sections = new Map(
  docs
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const [heading = "", ...text] = section.split("\n");
      return [heading.trim(), text.join("\n")] as const;
    }),
);

/** Of its constructor, and of OpenZeppelin's `multicall` where a call to the contract itself finds no code. */
const NEVER_ANSWERED = ["ZeroRootCommitment", "AddressEmptyCode", "FailedCall"];
/** Of payers, the admin, usage keys, lists and batches. */
const NOT_OF_OWNERS = [
  ...["UnknownApiPayer", "ForeignAccountId", "NotAdmin", "NotPendingAdmin", "NothingToCancel", "DelayTooLong"],
  ...["KeyExpired", "PageTooLarge", "UnknownPkpNumber", "NestedBatch", "TooLittleGas"],
];
const solidity = AccountManager__factory.abi.flatMap((item) => (item.type === "error" ? [item.name] : []));

describe("error codes", () => {
  it("are the same in the table and in docs/errors.md, in the same order", () => {
    const documented = [...sections.keys()].filter((heading) => !heading.startsWith("run: "));
    expect(documented).to.deep.equal(Object.keys(ERRORS));
  });

  it("of failed runs are all documented", () => {
    const documented = [...sections.keys()]
      .filter((heading) => heading.startsWith("run: "))
      .map((heading) => heading.slice("run: ".length));
    expect(documented).to.deep.equal([...RUN_ERROR_CODES]);
  });

  it("are each explained by a reason and a remedy", () => {
    for (const [heading, text] of sections) {
      expect(text, heading).to.match(/\*\*Why\.\*\* \S.{15,}/);
      if (!heading.startsWith("run: ")) expect(text, heading).to.match(/\*\*What to do\.\*\* \S.{10,}/);
    }
  });

  it("are documented under their status", () => {
    for (const [status, part] of docs
      .split(/^# Status /m)
      .slice(1)
      .map((text) => [text.slice(0, 3), text] as const)) {
      for (const [, code] of part.matchAll(/^## (\w+)$/gm))
        expect(String(ERRORS[code as ErrorCode].status), code).to.equal(status);
    }
  });

  it("include every error the contract can throw", () => {
    expect(solidity).to.have.length.above(20);
    for (const name of solidity.filter((name) => !NEVER_ANSWERED.includes(name)))
      expect(ERRORS, name).to.have.property(codeOfSolidityError(name));
  });

  it("include, with POST /relay, every error of the contract that an owner's call may meet", () => {
    const ofOwners = solidity.filter((name) => ![...NEVER_ANSWERED, ...NOT_OF_OWNERS].includes(name));
    expect(errorsOf(routeOf("relay"))).to.include.members(["owner_needs_token", ...ofOwners.map(codeOfSolidityError)]);
  });

  it("are each linked to their section by the problem's type", () => {
    for (const code of Object.keys(ERRORS) as ErrorCode[]) expect(problemType(code)).to.equal(`/docs/errors#${code}`);
  });

  it("named by a route exist, and every code is used by a route or belongs to the contract's administration", () => {
    const answered = new Set(ROUTE_NAMES.flatMap((name) => errorsOf(routeOf(name))));
    for (const name of ROUTE_NAMES)
      for (const code of routeOf(name).errors) expect(ERRORS, `${name}: ${code}`).to.have.property(code);
    const neverOverHttp = new Set([
      "not_admin",
      "not_pending_admin",
      "nothing_to_cancel",
      "delay_too_long",
      "nested_batch",
      "too_little_gas",
      "unknown_api_payer",
      "foreign_account_id",
      // Of a lease: an action sees it, no route.
      "budget_exceeded",
      // Ends of firings.
      "log_not_found",
      "trigger_not_due",
    ]);
    const outsideRoutes = new Set(["route_not_found", "method_not_allowed"]);
    const missing = (Object.keys(ERRORS) as ErrorCode[]).filter(
      (code) => !answered.has(code) && !neverOverHttp.has(code) && !outsideRoutes.has(code),
    );
    expect(missing).to.deep.equal([]);
  });
});
