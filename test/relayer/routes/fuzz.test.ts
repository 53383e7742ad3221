/**
 * A fuzzer based on the OpenAPI document: requests are generated from its schemas (valid, nearly valid and invalid) and
 * sent to a live server. No 500, no hang, no answer outside the document, no secret of another account in any answer.
 */
import { expect } from "chai";
import fc from "fast-check";
import { allEndpoints } from "../../../relayer/app";
import { ERRORS, type ErrorCode } from "../../../protocol/errors";
import { errorsOf, routeOf, type Endpoint } from "../../../protocol/http";
import { SEED, count } from "../../support/counts";
import { codeOf, members, newApiAccount, send, type ApiAccount } from "../../support/http";
import { useIdentityProvider, useStack } from "../../support/stack";
import { defined } from "../../../protocol/defined";

interface Schema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly examples?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly $ref?: string;
}
interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[];
  readonly requestBody?: {
    readonly content: { readonly "application/json": { readonly schema: Schema; readonly example: unknown } };
  };
}
type Document = { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> };

const RUNS = count(400, 10_000);
const SLOWEST_MS = 20_000;
/** Not fuzzed: they would end the account under test, or only return bytes. */
const LEFT_OUT = new Set(["transferOwnership", "convertToChainSecuredAccount", "viewerFile", "webhook"]);

const nasty = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    -1,
    1.5,
    1e308,
    2 ** 53,
    "",
    "0x",
    "0x0",
    "\u0000",
    "__proto__",
    "💥".repeat(40),
    "a".repeat(2_000),
    [],
    {},
    [[]],
    "1e9",
    "18446744073709551616",
  ),
  fc.jsonValue({ maxDepth: 3 }),
);

/** A value of the schema; sometimes an invalid one. */
function valueOf(schema: Schema, name = ""): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 12, arbitrary: goodValue(schema, name) }, { weight: 1, arbitrary: nasty });
}

function goodValue(schema: Schema, name: string): fc.Arbitrary<unknown> {
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((one) => goodValue(one, name)));
  const types = typeof schema.type === "string" ? [schema.type] : (schema.type ?? []);
  if (schema.properties !== undefined) return objectOf(schema);
  if (types.includes("array"))
    return fc.array(schema.items === undefined ? nasty : valueOf(schema.items, name), { maxLength: 4 });
  if (types.includes("boolean")) return fc.boolean();
  if (types.includes("object"))
    return fc.dictionary(fc.string({ maxLength: 8 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 });
  const texts = [
    fc.string({ unit: "binary", maxLength: Math.min(schema.maxLength ?? 40, 200) }),
    ...examplesOf(schema),
  ];
  const numbers = [
    fc.integer({ min: schema.minimum ?? 0, max: Math.min(schema.maximum ?? 5, 5_000_000) }),
    fc.constantFrom(0, 1, 2, 3, "1", "0x1", "2"),
  ];
  return types.includes("integer") ? fc.oneof(...numbers, ...examplesOf(schema)) : fc.oneof(...texts);
}

const examplesOf = ({ examples = [] }: Schema): fc.Arbitrary<unknown>[] =>
  examples.length === 0 ? [] : [fc.constantFrom(...examples)];

function objectOf({ properties = {}, required = [] }: Schema): fc.Arbitrary<unknown> {
  const fields = Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, valueOf(schema, name)]));
  return fc.record(fields, { requiredKeys: required.filter((name) => name in fields) });
}

interface Shot {
  readonly endpoint: Endpoint;
  readonly url: string;
  readonly body: unknown;
  readonly rawBody: string | undefined;
  readonly credential: "key" | "usageKey" | "token" | "none" | "junk" | "bearer";
  readonly headers: Readonly<Record<string, string>>;
}

const credential = fc.oneof(
  { weight: 6, arbitrary: fc.constant("key" as const) },
  { weight: 2, arbitrary: fc.constant("usageKey" as const) },
  { weight: 1, arbitrary: fc.constantFrom("none" as const, "junk" as const, "bearer" as const) },
  { weight: 1, arbitrary: fc.constant("token" as const) },
);
const oddHeaders = fc.oneof(
  { weight: 8, arbitrary: fc.constant({}) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Record<string, string>>(
      { "idempotency-key": "k" },
      { "idempotency-key": "x".repeat(256) },
      { "x-account": "0x12" },
      { "x-account": `0x${"12".repeat(32)}` },
      { "x-wallet-auth": "e30=" },
      { "x-wallet-auth": "%%%" },
      { "x-identity-token": "a.b.c" },
      { "content-type": "text/plain" },
      { authorization: "Bearer" },
      { "x-correlation-id": "é" },
    ),
  },
);

describe("the fuzzer over the OpenAPI document", function () {
  this.timeout(count(120_000, 3_600_000));
  const stack = useStack();
  const provider = useIdentityProvider();
  let account: ApiAccount;
  let usageKey: string;
  /** Of somebody who has no account until a request makes one. */
  let token: string;
  let document: Document;

  before(async () => {
    account = await newApiAccount(stack().baseUrl);
    await account.api.must("/add_group", { group_name: "g", group_description: "" });
    await account.api.must("/create_wallet", {});
    const rights = {
      can_create_groups: true,
      can_delete_groups: false,
      can_create_pkps: false,
      manage_ipfs_ids_in_groups: [0],
      add_pkp_to_groups: [1],
    };
    const made = await account.api.must("/add_usage_api_key", {
      name: "",
      description: "",
      ...rights,
      remove_pkp_from_groups: [],
      execute_in_groups: [0],
    });
    usageKey = String(made["usage_api_key"]);
    token = await provider().token("a newcomer");
    document = (await account.api.get("/openapi.json")).body as Document;
  });

  function shots(): fc.Arbitrary<Shot> {
    const endpoints = allEndpoints("Keywright").filter(
      ({ name }) => !LEFT_OUT.has(name) && routeOf(name).answers === undefined,
    );
    return fc.constantFrom(...endpoints).chain((endpoint) => {
      const path = endpoint.path.replace(/:(\w+)/g, "{$1}");
      const operation = document.paths[path]?.[endpoint.method.toLowerCase()] ?? {};
      const parameters = (operation.parameters ?? []).filter(({ in: place }) => place !== "header");
      const given = fc.record(Object.fromEntries(parameters.map(({ name, schema }) => [name, valueOf(schema, name)])), {
        requiredKeys: parameters.filter(({ in: place }) => place === "path").map(({ name }) => name),
      });
      const schema = operation.requestBody?.content["application/json"].schema;
      const raw = fc.option(fc.constantFrom("{", "null", "[1,2", '"', "{}"), { freq: 20, nil: undefined });
      return fc
        .record({
          given,
          body: schema === undefined ? fc.constant(undefined) : valueOf(schema),
          rawBody: schema === undefined ? fc.constant(undefined) : raw,
          credential,
          headers: oddHeaders,
        })
        .map(({ given: values, ...rest }) => ({
          endpoint,
          url: urlOf(path, values as Record<string, unknown>),
          ...rest,
        }));
    });
  }

  const asText = (value: unknown): string =>
    (typeof value === "string" ? value : JSON.stringify(value)).replaceAll(/[\ud800-\udfff]/g, "?");
  function urlOf(path: string, values: Record<string, unknown>): string {
    const used = new Set<string>();
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
      used.add(name);
      return encodeURIComponent(asText(values[name])) || "_";
    });
    const query = Object.entries(values).filter(([name]) => !used.has(name));
    if (query.length === 0) return filled;
    return `${filled}?${query.map(([name, value]) => `${name}=${encodeURIComponent(asText(value))}`).join("&")}`;
  }

  const credentialHeaders = (kind: Shot["credential"]): Record<string, string> => {
    if (kind === "none") return {};
    if (kind === "junk") return { "x-api-key": "junk" };
    if (kind === "token") return { "x-identity-token": token };
    if (kind === "bearer") return { authorization: `Bearer ${account.key}` };
    return { "x-api-key": kind === "key" ? account.key : usageKey };
  };

  it(`finds nothing wrong in ${RUNS} requests`, async () => {
    const seen = new Map<number, number>();
    await fc.assert(
      fc.asyncProperty(shots(), async (shot) => {
        const started = Date.now();
        const body = shot.rawBody === undefined ? shot.body : Buffer.from(shot.rawBody);
        const answer = await send(stack().baseUrl + shot.url, {
          method: shot.endpoint.method,
          ...defined({ body }),
          headers: { ...credentialHeaders(shot.credential), ...encodable(shot.headers) },
        });
        const where =
          `${shot.endpoint.method} ${shot.url} ${JSON.stringify(shot.body)?.slice(0, 500)} → ` +
          `${answer.status} ` +
          `${answer.text.slice(0, 500)}`;
        seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1);
        expect(answer.status, where).to.not.equal(500);
        expect(Date.now() - started, where).to.be.below(SLOWEST_MS);
        expect(answer.headers["x-request-id"], where).to.match(/^[0-9a-f-]{36}$/);
        expect(answer.text, "an account key came back").to.not.include(account.key);
        if (answer.status === 200) {
          const { response } = shot.endpoint.alias?.answered ?? routeOf(shot.endpoint.name);
          expect(response.safeParse(answer.body).success, where).to.equal(true);
          return;
        }
        const code = codeOf(answer) as ErrorCode;
        if (code !== "route_not_found") expect(errorsOf(routeOf(shot.endpoint.name)), where).to.include(code);
        expect(members(answer)["status"], where).to.equal(ERRORS[code].status);
      }),
      { numRuns: RUNS, seed: SEED, endOnFailure: true },
    );
    expect([...seen.keys()], "good and bad requests were both among them").to.include.members([200, 400, 401, 422]);
    expect((await send(`${stack().baseUrl}/ready`)).status).to.equal(200);
  });
});

/** Header values are sent as latin1. */
const encodable = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Buffer.from(value, "utf8").toString("latin1")]),
  );
