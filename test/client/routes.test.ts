/** The SDK's route table agrees with the service's. `KEYWRIGHT_UPDATE=1` writes it. */
import { expect } from "chai";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { API_PREFIX, ROUTE_NAMES, routeOf } from "../../protocol/http";
import { CLIENT_ROUTES } from "../../client/routes";

/** The only answers that are text and for programs. */
const TEXTS = new Set(["exportHistory"]);
/** Excluded: pages and files are for browsers, the webhook is for the payment processor, hooks are for senders. */
const NOT_FOR_CLIENTS = new Set(["webhook", "openapi", "callHook"]);

function slimTable(): Record<string, unknown> {
  const names = ROUTE_NAMES.filter(
    (name) => TEXTS.has(name) || (routeOf(name).answers === undefined && !NOT_FOR_CLIENTS.has(name)),
  );
  return Object.fromEntries(
    names.map((name) => {
      const { method, path, at, effect, paged } = routeOf(name);
      return [
        name,
        {
          method,
          path: at === "origin" ? path : API_PREFIX + path,
          ...(effect ? { effect } : {}),
          ...(paged === true ? { paged } : {}),
          ...(TEXTS.has(name) ? { text: true } : {}),
        },
      ];
    }),
  );
}

const FILE = join(__dirname, "..", "..", "client", "routes.ts");

function writeTable(): void {
  const text = `/**
 * Written from the route table (protocol/http) by KEYWRIGHT_UPDATE=1 npx mocha test/client/routes.test.ts; never by
 * hand.
 */
export interface ClientRoute {
  readonly method: "GET" | "POST";
  /** From the origin; parameters as \`:name\`. */
  readonly path: string;
  /** A call changes something: it carries an idempotency key. */
  readonly effect?: true;
  /** A list: its total is in X-Total-Count. */
  readonly paged?: true;
  /** The answer is text, not JSON. */
  readonly text?: true;
}

export const CLIENT_ROUTES = ${JSON.stringify(slimTable())} as const satisfies Record<string, ClientRoute>;
`;
  writeFileSync(FILE, text);
  execFileSync("npx", ["prettier", "--write", FILE]);
}

describe("the SDK's routes", () => {
  it("are those of the route table", () => {
    if (process.env["KEYWRIGHT_UPDATE"] === "1") writeTable();
    else expect(CLIENT_ROUTES).to.deep.equal(slimTable());
  });
});
