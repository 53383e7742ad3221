/**
 * Invalid input on every route, generated from the route table: the answer is a problem with the right status, never a
 * 500, and nothing is written.
 */
import { expect } from "chai";
import { ERRORS, type ErrorCode } from "../../../protocol/errors";
import { ROUTE_NAMES, endpointsOf, errorsOf, routeOf, type Endpoint, type Route } from "../../../protocol/http";
import { count } from "../../support/counts";
import {
  codeOf,
  members,
  newApiAccount,
  send,
  type ApiAccount,
  type HttpAnswer,
  type HttpRequest,
} from "../../support/http";
import { useIdentityProvider, useStack } from "../../support/stack";

interface Place {
  readonly endpoint: Endpoint;
  readonly route: Route;
  readonly path: string;
}

const filled = ({ path }: Endpoint, params: Record<string, string> = {}): string =>
  path.replace(/:(\w+)/g, (_, name: string) => params[name] ?? "1");

/** Every endpoint with a JSON answer, with the example's path parameters. */
const PLACES: Place[] = ROUTE_NAMES.flatMap((name) => endpointsOf(name, "Keywright")).map((endpoint) => {
  const route = routeOf(endpoint.name);
  return { endpoint, route, path: filled(endpoint, route.example.params) };
});
const takesJson = ({ route, endpoint }: Place): boolean =>
  endpoint.method === "POST" && route.request.body !== undefined;
const takesObject = (place: Place): boolean => takesJson(place) && typeof place.route.example.body === "object";
const needsKey = ({ route }: Place): boolean =>
  ["anyKey", "ownerKey", "accountKey", "keyOrWallet", "ownerOrWallet"].includes(route.auth);
const WITH_BODY = PLACES.filter(takesJson);
const WITH_OBJECT = PLACES.filter(takesObject);

/** Values of every JSON type, none valid for every field. */
const WRONG_TYPES: unknown[] = [
  null,
  true,
  1.5,
  -1,
  "",
  "0x",
  "ж".repeat(3),
  [],
  {},
  [[[]]],
  { a: { b: 1 } },
  1e300,
  "0xzz",
  "9".repeat(80),
];

/** In a quick run every field is tested with a third of the values, a different third each; in a deep one with all. */
const someOf = <T>(values: readonly T[], turn: number): readonly T[] =>
  values.filter((_, at) => (at + turn) % count(3, 1) === 0);

describe("bad input on every route", function () {
  this.timeout(120_000);
  const stack = useStack();
  const provider = useIdentityProvider();
  let account: ApiAccount;
  let picture: string[];

  const look = async (): Promise<string[]> =>
    Promise.all(
      ["/account", "/billing/balance", "/list_groups", "/list_wallets", "/list_actions", "/list_api_keys"].map(
        async (path) => (await account.api.get(path)).text,
      ),
    );

  before(async () => {
    account = await newApiAccount(stack().baseUrl);
    await account.api.must("/add_group", { group_name: "g", group_description: "" });
    picture = await look();
  });

  afterEach("nothing was written or charged", async () => expect(await look()).to.deep.equal(picture));

  const ask = (place: Place, request: HttpRequest) =>
    send(stack().baseUrl + place.path, { method: place.endpoint.method, key: account.key, ...request });

  function expectProblem(answer: HttpAnswer, place: Place, statuses: number[], what: string): void {
    const where = `${place.endpoint.method} ${place.path} ${what}: ${answer.text.slice(0, 300)}`;
    expect(answer.status, where).to.be.oneOf(statuses);
    expect(answer.headers["content-type"], where).to.include("application/problem+json");
    const { code, status, detail, request_id: requestId, title, message } = members(answer);
    expect(ERRORS, where).to.have.property(String(code));
    expect(errorsOf(place.route), `${where} is not in the document`).to.include(code as ErrorCode);
    expect({ status, title, message }).to.deep.equal({
      status: answer.status,
      title: ERRORS[code as ErrorCode].title,
      message: detail,
    });
    expect(requestId).to.equal(answer.headers["x-request-id"]);
  }

  it("without a credential: 401 before the body is parsed", async () => {
    const places = PLACES.filter(needsKey);
    expect(places.length).to.be.above(30);
    for (const place of places)
      expectProblem(
        await ask(place, { key: undefined, ...(takesJson(place) ? { body: Buffer.from("{") } : {}) }),
        place,
        [401],
        "no key",
      );
  });

  it("garbage and hash-shaped keys: 401", async () => {
    for (const place of PLACES.filter(needsKey)) {
      for (const key of ["garbage", account.id, account.wallet, `${"A".repeat(43)}=`])
        expectProblem(await ask(place, { key }), place, [401], `key ${key}`);
    }
  });

  it("an identity without an account, or that names one which is not its own: a code of the document", async () => {
    const token = await provider().token("nobody");
    const takesToken = PLACES.filter((place) => needsKey(place) || place.route.auth === "wellFormedKey");
    for (const place of takesToken) {
      const body = takesJson(place) ? { body: place.route.example.body } : {};
      const asked = async (headers: Record<string, string>): Promise<HttpAnswer> =>
        ask(place, { key: undefined, ...body, headers: { "x-identity-token": token, ...headers } });
      expectProblem(await asked({ "x-account": "0x12" }), place, [400], "half an account");
      // Its answer is whether the account exists.
      if (place.route.auth === "wellFormedKey") continue;
      expectProblem(await asked({}), place, [404], "no account");
      expectProblem(await asked({ "x-account": account.id }), place, [403], "another's account");
      expectProblem(await asked({ "x-identity-token": "a.b.c" }), place, [401], "no token");
    }
  });

  it("malformed JSON: 400", async () => {
    for (const [index, place] of WITH_BODY.entries()) {
      for (const body of someOf(
        ["{", "{'a':1}", "\u0000", '{"a":1}}', "undefined", "NaN", '{"a":}', '"half', "[1,]"],
        index,
      )) {
        const answer = await ask(place, { body: Buffer.from(body) });
        expectProblem(answer, place, [400], body);
        expect(codeOf(answer)).to.equal("malformed_json");
      }
    }
  });

  it("JSON that is not an object: 422", async () => {
    for (const place of WITH_OBJECT) {
      for (const body of ["[]", "null", "1", '"text"', "true"])
        expectProblem(await ask(place, { body: Buffer.from(body) }), place, [422], body);
    }
  });

  it("an unknown field: 422 naming it, also when it is called __proto__ or constructor", async () => {
    // Names for older programs may read what those send.
    for (const place of WITH_OBJECT.filter(({ endpoint }) => endpoint.alias?.read === undefined)) {
      for (const field of ["surprise", "__proto__", "constructor", "toString"]) {
        const text = JSON.stringify(place.route.example.body);
        const answer = await ask(place, {
          body: Buffer.from(`{${JSON.stringify(field)}:{"admin":true}${text === "{}" ? "" : ","}${text.slice(1)}`),
        });
        expectProblem(answer, place, [422], field);
        expect(answer.text).to.include(`"field":"${field}"`);
      }
    }
  });

  it("each field missing: 422 naming it, or accepted where it is optional", async () => {
    for (const place of WITH_OBJECT) {
      const example = place.route.example.body as Record<string, unknown>;
      for (const field of Object.keys(example)) {
        const { [field]: _, ...rest } = example;
        if (place.route.request.body?.safeParse(rest).success) continue;
        const answer = await ask(place, { body: rest });
        // Where at least one of several fields is required, the value itself is invalid.
        const wholeBody = ["runAction", "createTrigger", "changeGroup"].some((name) =>
          place.endpoint.name.startsWith(name),
        );
        expectProblem(answer, place, wholeBody ? [400, 422] : [422], `without ${field}`);
        if (!wholeBody) expect(answer.text, `without ${field}`).to.include(`"field":"${field}"`);
      }
    }
  });

  it("each field of every wrong type or with an invalid value: 400, 413 or 422, naming it", async () => {
    for (const place of WITH_OBJECT) {
      const example = place.route.example.body as Record<string, unknown>;
      for (const [index, field] of Object.keys(example).entries()) {
        for (const wrong of someOf(WRONG_TYPES, index)) {
          const body = { ...example, [field]: wrong };
          if (place.route.request.body?.safeParse(body).success && field !== "typed_data" && field !== "signature")
            continue;
          expectProblem(await ask(place, { body }), place, [400, 413, 422], `${field} = ${JSON.stringify(wrong)}`);
        }
      }
    }
  });

  it("invalid path and query parameters: 400, repeated ones 422", async () => {
    for (const place of PLACES.filter(
      ({ route }) => route.auth === "anyKey" && (route.request.query ?? route.request.params) !== undefined,
    )) {
      for (const name of Object.keys(place.route.request.query?.shape ?? {})) {
        for (const value of ["", "-1", "1.5", "ten", "0x", "1e3", "%00", "9".repeat(80), "%F0%9F%98%80"]) {
          const query = { ...place.route.example.query, [name]: undefined };
          const rest = Object.entries(query).flatMap(([key, given]) =>
            given === undefined ? [] : [`&${key}=${given}`],
          );
          const answer = await send(`${stack().baseUrl}${place.path}?${name}=${value}${rest.join("")}`, {
            method: place.endpoint.method,
            key: account.key,
          });
          // Cursors and searched words are texts.
          if (["after", "search"].includes(name) && answer.status === 200) continue;
          expectProblem(answer, place, [400], `${name}=${value}`);
        }
      }
      if (!place.endpoint.path.includes(":id")) continue;
      for (const id of ["0", "x", "-1", "1.5", "9".repeat(30), "1%00"]) {
        const body = takesJson(place) ? { body: place.route.example.body } : {};
        const answer = await send(stack().baseUrl + filled(place.endpoint, { id }), {
          method: place.endpoint.method,
          key: account.key,
          ...body,
        });
        expectProblem(answer, place, [400], `id ${id}`);
      }
    }
  });

  it("unknown ids: 404, for an authorized caller", async () => {
    const unknownHash = `0x${"77".repeat(32)}`;
    const unknown: [string, unknown, string][] = [
      ["/remove_group", { group_id: 9_999 }, "unknown_group"],
      ["/remove_group", { group_id: "18446744073709551615" }, "unknown_group"],
      ["/update_group", { group_id: 9_999, name: "", description: "" }, "unknown_group"],
      ["/update_group", { group_id: 9_999, name: "", description: "", pkp_ids_permitted: [] }, "unknown_group"],
      [
        "/add_action_to_group",
        { group_id: 9_999, action_ipfs_cid: "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX" },
        "unknown_group",
      ],
      ["/remove_action_from_group", { group_id: 1, hashed_cid: unknownHash }, "not_in_group"],
      ["/add_pkp_to_group", { group_id: 1, pkp_id: 99 }, "unknown_pkp_number"],
      ["/add_pkp_to_group", { group_id: 1, pkp_id: "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC" }, "unknown_pkp"],
      ["/remove_pkp_from_group", { group_id: 1, pkp_id: 99 }, "unknown_pkp_number"],
      ["/delete_action", { hashed_cid: unknownHash }, "unknown_action"],
      ["/update_action_metadata", { hashed_cid: unknownHash, name: "", description: "" }, "unknown_action"],
      ["/remove_usage_api_key", { usage_api_key: unknownHash }, "unknown_usage_key"],
      ["/remove_usage_api_key", { usage_api_key: account.id }, "unknown_usage_key"],
      [
        "/update_usage_api_key_metadata",
        { usage_api_key: unknownHash, name: "", description: "" },
        "unknown_usage_key",
      ],
      ["/add_group", { group_name: "", group_description: "", pkp_ids_permitted: [99] }, "unknown_pkp_number"],
      ["/groups/1/actions", { remove: ["QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX"] }, "not_in_group"],
      ["/billing/confirm_payment", { payment_intent_id: "pi_nobodys" }, "payment_intent_not_found"],
    ];
    for (const [path, body, code] of unknown) {
      const answer = await account.api.post(path, body);
      expect([answer.status, codeOf(answer)], `${path} ${JSON.stringify(body)}`).to.deep.equal([404, code]);
    }
    for (const path of [
      "/groups/9999",
      "/list_wallets_in_group?group_id=9999",
      "/list_actions?group_id=9999",
      `/submissions/${"0".repeat(32)}`,
    ]) {
      expect((await account.api.get(path)).status, path).to.equal(404);
    }
  });

  it("values that are invalid by their meaning: 400 with the contract's code", async () => {
    const cid = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX";
    const impossible: [string, unknown, string][] = [
      ["/groups/1/actions", { add: [cid], remove: [cid] }, "member_in_both_lists"],
      ["/groups/1/actions", {}, "invalid_value"],
      ["/transfer_ownership", { new_owner_address: `0x${"0".repeat(40)}` }, "zero_address"],
      ["/transfer_ownership", { new_owner_address: account.wallet }, "same_owner"],
      [
        "/add_action",
        { action_ipfs_cid: "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy", name: "", description: "" },
        "invalid_cid",
      ],
      ["/billing/create_payment_intent", { amount_cents: 499 }, "amount_out_of_range"],
      ["/billing/create_payment_intent", { amount_cents: 100_000_000 }, "amount_out_of_range"],
      ["/billing/create_payment_intent", { amount_cents: 2 ** 60 }, "amount_out_of_range"],
    ];
    for (const [path, body, code] of impossible) {
      const answer = await account.api.post(path, body);
      expect([answer.status, codeOf(answer)], `${path} ${JSON.stringify(body)}`).to.deep.equal([400, code]);
    }
  });

  it("every invalid field is listed in one answer", async () => {
    const answer = await account.api.post("/add_group", {
      group_name: 1,
      pkp_ids_permitted: ["x", 1.5],
      colour: "red",
    });
    expect(answer.status).to.equal(422);
    const fields = (members(answer)["errors"] as { field: string }[]).map(({ field }) => field);
    expect(fields).to.have.members([
      "group_name",
      "group_description",
      "pkp_ids_permitted.0",
      "pkp_ids_permitted.1",
      "colour",
    ]);
  });
});
