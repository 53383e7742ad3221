/**
 * Builds the OpenAPI 3.1 document from the route table: every endpoint with an example and every error it may return.
 * Source: docs/conformance.md §9.
 */
import { createHash } from "node:crypto";
import {
  OpenAPIRegistry,
  OpenApiGeneratorV31,
  type ResponseConfig,
  type RouteConfig,
} from "@asteasolutions/zod-to-openapi";
import { DENIALS } from "../../protocol/denials";
import { ERRORS, type ErrorCode } from "../../protocol/errors";
import {
  PROBLEM_TYPE,
  ROUTE_NAMES,
  WITHOUT_CALLER,
  endpointsOf,
  errorsOf,
  problemSchema,
  problemType,
  routeOf,
  type AuthKind,
  type Endpoint,
  type Price,
  type Route,
} from "../../protocol/http";
import { WIRE_LIMITS } from "../../protocol/limits";
import { RECEIPT_HEADER } from "../../protocol/receipt";
import { HOOK_HEADERS } from "../../protocol/trigger";
import { defined } from "../../protocol/defined";

export type OpenApiDocument = ReturnType<OpenApiGeneratorV31["generateDocument"]>;

const SECURITY_SCHEMES = {
  bearer: { type: "http", scheme: "bearer", description: "An account key or usage key." },
  apiKey: { type: "apiKey", in: "header", name: "X-Api-Key", description: "The same key, in the other header." },
  identityToken: {
    type: "apiKey",
    in: "header",
    name: "X-Identity-Token",
    description: "An OIDC ID token of an owner who signs in with an identity provider.",
  },
  walletAuth: {
    type: "apiKey",
    in: "header",
    name: "X-Wallet-Auth",
    description: "Base64 of JSON {typed_data, signature}, primaryType BillingAuth.",
  },
} as const;
type Scheme = keyof typeof SECURITY_SCHEMES;

const KEYS: readonly Scheme[] = ["bearer", "apiKey"];
const SCHEMES: Record<AuthKind, { readonly schemes: readonly Scheme[]; readonly optional?: true }> = {
  none: { schemes: [] },
  stripe: { schemes: [] },
  identityOptional: { schemes: ["identityToken"], optional: true },
  wellFormedKey: { schemes: [...KEYS, "identityToken"] },
  anyKey: { schemes: [...KEYS, "identityToken"] },
  ownerKey: { schemes: [...KEYS, "identityToken"] },
  accountKey: { schemes: KEYS },
  keyOrWallet: { schemes: [...KEYS, "identityToken", "walletAuth"] },
  ownerOrWallet: { schemes: [...KEYS, "identityToken", "walletAuth"] },
  optionalKey: { schemes: [...KEYS, "identityToken"], optional: true },
};

const PRICE_WORDS: Record<Price, string> = {
  free: "Free.",
  managementWrite: "Costs one management write.",
  writeIfFunded: "Costs one management write when there is credit.",
  run: "Costs its execution time, by the started second.",
};

export function buildOpenApi(serviceName: string, version: string): OpenApiDocument {
  const registry = new OpenAPIRegistry();
  for (const [name, scheme] of Object.entries(SECURITY_SCHEMES))
    registry.registerComponent("securitySchemes", name, scheme);
  for (const code of Object.keys(ERRORS) as ErrorCode[])
    registry.registerComponent("examples", code, { value: exampleProblem(code) });
  for (const name of ROUTE_NAMES)
    endpointsOf(name, serviceName).forEach((endpoint, index) => registry.registerPath(pathOf(endpoint, index)));
  const document = new OpenApiGeneratorV31(registry.definitions).generateDocument({
    openapi: "3.1.0",
    info: {
      title: `${serviceName} API`,
      version,
      description:
        "Accounts, PKPs and actions. Errors are application/problem+json; every code is explained at /docs/errors.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
  });
  for (const { get, post } of Object.values(document.paths ?? {}))
    for (const operation of [get, post])
      if (operation?.responses !== undefined) operation.responses = opened(operation.responses);
  return document;
}

/** Members may be added to answers, so that only requests are closed. */
const opened = <T>(answers: T): T =>
  JSON.parse(JSON.stringify(answers), (name, value: unknown) =>
    name === "additionalProperties" && value === false ? undefined : value,
  ) as T;

export interface DescriptionFile {
  readonly content: Buffer;
  readonly etag: string;
}

/** The document's bytes, made once for all who ask. */
export function descriptionFile(document: OpenApiDocument): DescriptionFile {
  const content = Buffer.from(JSON.stringify(document));
  return { content, etag: `"${createHash("sha256").update(content).digest("base64url")}"` };
}

function pathOf({ name, method, path, deprecated, alias }: Endpoint, index: number): RouteConfig {
  const route = routeOf(name);
  const { response, example } = alias?.answered ?? { response: route.response, example: route.example.response };
  const { schemes, optional } = SCHEMES[route.auth];
  return {
    method: method === "GET" ? "get" : "post",
    path: path.replace(/:(\w+)/g, "{$1}"),
    operationId: index === 0 ? name : `${name}_${index}`,
    tags: [route.tag],
    summary: route.summary,
    description: PRICE_WORDS[route.price],
    ...(deprecated ? { deprecated } : {}),
    security: [...schemes.map((scheme) => ({ [scheme]: [] })), ...(optional || schemes.length === 0 ? [{}] : [])],
    request: requestOf(route, method),
    parameters: PARAMETERS.filter(([, isOf]) => isOf(route)).map(([parameter]) => parameter),
    responses: responsesOf({ ...route, response, example: { ...route.example, response: example } }),
  };
}

/** Its body is read raw, since a signature is of its bytes. */
const isHook = ({ body }: Route): boolean => body === "hook";

const optionalIn = (place: "header" | "query", name: string, description: string, schema: object = {}) => ({
  ...({ name, in: place, required: false, description } as const),
  schema: { type: "string" as const, ...schema },
});

/** What a route takes besides its own parameters. */
const PARAMETERS: readonly (readonly [ReturnType<typeof optionalIn>, (route: Route) => boolean | undefined])[] = [
  [
    optionalIn(
      "header",
      "Idempotency-Key",
      `The same key and body return the first answer for ${WIRE_LIMITS.idempotencyHours} hours; nothing is executed ` +
        "twice.",
      { minLength: 1, maxLength: WIRE_LIMITS.idempotencyKeyChars },
    ),
    ({ effect }) => effect,
  ],
  [
    optionalIn(
      "query",
      "secret",
      "A repeated request gets the first answer with its secret, which was lost with that answer.",
      { enum: ["again"] },
    ),
    ({ secretAgain }) => secretAgain,
  ],
  [
    optionalIn("header", "X-Account", "The id of the account, where an identity or a wallet owns several.", {
      pattern: "^0x[0-9a-fA-F]{64}$",
    }),
    ({ auth }) => SCHEMES[auth].schemes.includes("identityToken") && !WITHOUT_CALLER.has(auth),
  ],
  ...HOOK_HEADERS.map(
    (name) => [optionalIn("header", name, "Part of a signature, where the hook verifies one."), isHook] as const,
  ),
];

function requestOf(route: Route, method: Endpoint["method"]): NonNullable<RouteConfig["request"]> {
  const { params, query, body } = route.request;
  const schema = isHook(route) ? { type: "object" as const, additionalProperties: true } : body;
  if (schema === undefined || method === "GET") return defined({ params, query });
  const content = { "application/json": { schema, ...defined({ example: route.example.body }) } };
  return { ...defined({ params, query }), body: { content, required: !isHook(route) } };
}

const RETRY_AFTER = { "Retry-After": { schema: { type: "integer" as const }, description: "Seconds." } };
const RECEIPT = { [RECEIPT_HEADER]: { schema: { type: "string" as const }, description: "Of the run." } };
const denials: ReadonlySet<string> = new Set(DENIALS);
/** Of a run that is not repeated, or that the contract denies to a key that it knows. */
const hasReceipt = (code: ErrorCode): boolean =>
  code === "already_ran" || (denials.has(code) && ERRORS[code].status === 403);

function responsesOf(route: Route): Record<string, ResponseConfig> {
  const headers = {
    "X-Request-Id": { schema: { type: "string" as const, format: "uuid" } },
    ...(route.paged ? { "X-Total-Count": { schema: { type: "integer" as const } } } : {}),
    ...(isRun(route) ? RECEIPT : {}),
  };
  const content = {
    [route.answers ?? "application/json"]: { schema: route.response, example: route.example.response },
  };
  return { "200": { description: "Done.", headers, content }, ...problemsOf(route) };
}

/** One entry per status, listing its codes with an example each. */
function problemsOf(route: Route): Record<string, ResponseConfig> {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of errorsOf(route))
    byStatus.set(ERRORS[code].status, [...(byStatus.get(ERRORS[code].status) ?? []), code]);
  return Object.fromEntries([...byStatus].map(([status, codes]) => [String(status), problemResponse(codes, route)]));
}

const isRepeated = (code: ErrorCode): boolean => "retryable" in ERRORS[code] || code === "idempotency_in_progress";

const isRun = (route: Route): boolean => route.errors.includes("already_ran");

function problemResponse(codes: readonly ErrorCode[], route: Route): ResponseConfig {
  const examples = Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]));
  const headers = {
    ...(codes.some(isRepeated) ? RETRY_AFTER : {}),
    ...(isRun(route) && codes.some(hasReceipt) ? RECEIPT : {}),
  };
  return {
    description: codes.map((code) => `\`${code}\`: ${ERRORS[code].title}.`).join("\n"),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    content: { [PROBLEM_TYPE]: { schema: problemSchema, examples } },
  };
}

function exampleProblem(code: ErrorCode): Record<string, unknown> {
  const { title, status } = ERRORS[code];
  const detail = `${title}.`;
  const retryable = "retryable" in ERRORS[code];
  return {
    type: problemType(code),
    title,
    status,
    detail,
    code,
    request_id: "6f1f6a0e-5b3c-4f0e-9a57-0d6d6e9a3f11",
    retryable,
    message: detail,
  };
}
