/**
 * The OpenAPI document is complete and correct: every endpoint of the router is in it, and its examples fit the schemas
 * used for validation.
 */
import { expect } from "chai";
import type Router from "@koa/router";
import { allEndpoints, routerOf, type AppOptions } from "../../../relayer/app";
import { buildOpenApi, descriptionFile } from "../../../relayer/site/openapi";
import { serviceRoutes, type ServiceDeps } from "../../../relayer/routes/service";
import { ERRORS, type ErrorCode } from "../../../protocol/errors";
import { ROUTE_NAMES, errorsOf, routeOf } from "../../../protocol/http";
import { HOOK_HEADERS } from "../../../protocol/trigger";
import { must } from "../../support/must";

interface Operation {
  operationId: string;
  summary: string;
  deprecated?: boolean;
  parameters?: { name: string; in: string; required?: boolean }[];
  requestBody?: { required: boolean; content: Record<string, { example?: unknown; schema: unknown }> };
  responses: Record<
    string,
    {
      headers?: Record<string, unknown>;
      content: Record<string, { schema: unknown; example?: unknown; examples?: Record<string, unknown> }>;
    }
  >;
}

const SERVICE = "Keywright";
const document = buildOpenApi(SERVICE, "1.0.0");
const paths = document.paths as Record<string, Record<string, Operation>>;
const shared = document.components?.examples as Record<string, { value: object } | undefined>;
const operationAt = (method: string, path: string): Operation | undefined =>
  paths[path.replace(/:(\w+)/g, "{$1}")]?.[method.toLowerCase()];

/** The routes koa answers, from the router itself. */
function servedRoutes(): { method: string; path: string }[] {
  const options = { handlers: {}, serviceName: SERVICE } as unknown as AppOptions;
  const router: Router = routerOf(options) as unknown as Router;
  return router.stack.flatMap((layer) =>
    layer.methods.filter((method) => method !== "HEAD").map((method) => ({ method, path: String(layer.path) })),
  );
}

describe("the OpenAPI document", () => {
  it("is OpenAPI 3.1", () => expect(document.openapi).to.equal("3.1.0"));

  it("is made into bytes once, and not sent again to who has it", async () => {
    const { openapi } = serviceRoutes({ description: descriptionFile(document) } as unknown as ServiceDeps);
    const ask = async (known?: string) => {
      const headers = new Map<string, string>();
      const call = {
        header: (name: string) => (name === "If-None-Match" ? known : undefined),
        setHeader: (name: string, value: string) => void headers.set(name, value),
      };
      return { etag: headers, ...(await openapi(call as unknown as Parameters<typeof openapi>[0])) };
    };
    const [first, second] = [await ask(), await ask()];
    expect(first.content).to.equal(second.content);
    expect(JSON.parse(String(first.content))).to.deep.equal(JSON.parse(JSON.stringify(document)));
    const again = await ask(`W/${first.etag.get("ETag") ?? ""}`);
    expect([again.status, again.content]).to.deep.equal([304, ""]);
  });

  it("has an operation for every route the router serves, and no other", () => {
    const served = servedRoutes();
    expect(served.length).to.be.above(50);
    for (const { method, path } of served)
      expect(operationAt(method, path), `${method} ${path}`).to.not.equal(undefined);
    const documented = Object.values(paths).flatMap((operations) => Object.keys(operations));
    expect(documented.length).to.equal(served.length);
  });

  it("gives every operation its own id, a summary and every path parameter", () => {
    const ids = new Set<string>();
    for (const [path, operations] of Object.entries(paths)) {
      for (const operation of Object.values(operations)) {
        expect(ids.has(operation.operationId), operation.operationId).to.equal(false);
        ids.add(operation.operationId);
        expect(operation.summary.length).to.be.above(10);
        const wanted = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
        const given = (operation.parameters ?? [])
          .filter(({ in: place, required }) => place === "path" && required)
          .map(({ name }) => name);
        expect(given, path).to.deep.equal(wanted);
      }
    }
  });

  it("marks the GET form of create_wallet as deprecated", () => {
    expect(operationAt("GET", "/core/v1/create_wallet")?.deprecated).to.equal(true);
    expect(operationAt("POST", "/core/v1/create_wallet")?.deprecated).to.equal(undefined);
  });

  it("lists every error a route may answer with, under its status, with an example", () => {
    for (const { name, method, path } of allEndpoints(SERVICE)) {
      const operation = operationAt(method, path);
      for (const code of errorsOf(routeOf(name))) {
        const response = operation?.responses[String(ERRORS[code].status)]?.content["application/problem+json"];
        expect(response?.examples, `${name} ${code}`).to.have.property(code);
        expect(shared[code]?.value, code).to.include({ code, status: ERRORS[code].status });
      }
    }
  });

  it("has the headers of answers that may be repeated, and of answers of runs", () => {
    for (const [path, operations] of Object.entries(paths))
      for (const { responses } of Object.values(operations))
        for (const [status, { headers = {}, content }] of Object.entries(responses)) {
          const codes = Object.keys(content["application/problem+json"]?.examples ?? {}) as ErrorCode[];
          const isRepeated = codes.some((code) => "retryable" in ERRORS[code] || code === "idempotency_in_progress");
          expect("Retry-After" in headers, `${path} ${status}`).to.equal(isRepeated);
          const isOfRun = /\/(run|lit)_action$/.test(path) && ["200", "403", "409"].includes(status);
          expect("Keywright-Receipt" in headers, `${path} ${status}`).to.equal(isOfRun);
        }
  });

  it("has X-Account where an owner of several accounts may say which one is meant", () => {
    const takesAccount = (method: string, path: string) =>
      operationAt(method, `/core/v1/${path}`)?.parameters?.some(({ name }) => name === "X-Account");
    expect(["account", "usage"].map((path) => takesAccount("GET", path))).to.deep.equal([true, true]);
    const others = [takesAccount("POST", "new_account"), takesAccount("GET", "account_exists")];
    expect([...others, takesAccount("GET", "limits")]).to.deep.equal([false, false, false]);
  });

  it("has a hook's body and the headers of its signature, all of them optional", () => {
    const { requestBody, parameters = [] } = must(operationAt("POST", "/core/v1/hooks/:id"));
    expect([requestBody?.required, requestBody?.content["application/json"]?.schema]).to.deep.equal([
      false,
      { type: "object", additionalProperties: true },
    ]);
    const headers = parameters.filter((one) => one.in === "header" && one.required === false).map(({ name }) => name);
    expect(headers).to.deep.equal(["Idempotency-Key", ...HOOK_HEADERS]);
  });

  it("leaves answers open for members and codes that may be added, and requests closed", () => {
    const closed = '"additionalProperties":false';
    const operations = Object.values(paths).flatMap((item) => Object.values(item));
    for (const { operationId, responses } of operations)
      expect(JSON.stringify(responses), operationId).to.not.include(closed);
    expect(JSON.stringify(operations.map(({ requestBody }) => requestBody))).to.include(closed);
    const { Problem, ...others } = document.components?.schemas as Record<string, { properties: { code: object } }>;
    expect([JSON.stringify(Problem).includes(closed), Object.keys(others)]).to.deep.equal([false, []]);
    expect(Problem?.properties.code).to.not.have.property("enum");
  });

  it("has examples that the validation accepts", () => {
    for (const name of ROUTE_NAMES) {
      const { request, response, example } = routeOf(name);
      if (request.body !== undefined)
        expect(request.body.safeParse(example.body).error, `${name} body`).to.equal(undefined);
      if (request.query !== undefined)
        expect(request.query.safeParse(example.query ?? {}).error, `${name} query`).to.equal(undefined);
      if (request.params !== undefined)
        expect(request.params.safeParse(example.params).error, `${name} params`).to.equal(undefined);
      expect(response.safeParse(example.response).error, `${name} answer`).to.equal(undefined);
    }
  });

  it("uses the service's name in the neutral route", () => {
    const renamed = buildOpenApi("Acme", "1.0.0").paths as Record<string, unknown>;
    expect(renamed).to.have.property("/core/v1/get_acme_action_ipfs_id");
    expect(renamed).to.have.property("/core/v1/get_lit_action_ipfs_id");
  });
});
