/** The service itself: health, description, attestation, pages. Source: docs/conformance.md §4, §9. */
import { z } from "zod";
import { reading } from "./fields";
import { defineRoute } from "./route";

const origin = { ...reading, at: "origin", tag: "Service", auth: "none" } as const;
const page = { ...origin, response: z.string(), answers: "text/html" } as const;

const health = defineRoute({
  ...origin,
  path: "/health",
  summary: "The process is up.",
  response: z.strictObject({ status: z.literal("ok") }),
  example: { response: { status: "ok" } },
});

const ready = defineRoute({
  ...origin,
  path: "/ready",
  summary: "Chain, database, executor and a payer with gas are there. 503 with the problems otherwise.",
  response: z.strictObject({ ready: z.literal(true) }),
  errors: ["not_ready"],
  example: { response: { ready: true } },
});

const info = defineRoute({
  ...origin,
  path: "/info",
  aliases: [{ method: "GET", path: "/dstack/v1/info" }],
  summary: "dstack's info object with the kind of TEE, config document and sandbox level.",
  response: z.looseObject({
    tee: z.enum(["dstack", "simulated", "none"]),
    root_commitment: z
      .string()
      .describe("of the root of all keys; the executor serves only while it is the one that the contract is bound to"),
    config: z.record(z.string(), z.unknown()),
    app_id: z.string().optional(),
    compose_hash: z.string().optional(),
    sandbox: z.strictObject({
      level: z.string().describe("`full`; `partial` or `none` where something that isolates actions is missing"),
      missing: z.array(z.string()).describe("what is missing, and how to get it"),
    }),
  }),
  errors: ["executor_unavailable", "attestation_unavailable"],
  example: {
    response: {
      tee: "dstack",
      app_id: "a1",
      compose_hash: "b2",
      tcb_info: { app_compose: "{}" },
      root_commitment: `0x${"c0".repeat(32)}`,
      config: {},
      sandbox: { level: "full", missing: [] },
    },
  },
});

const attestation = defineRoute({
  ...origin,
  path: "/attestation",
  aliases: [{ method: "GET", path: "/dstack/v1/attestation" }],
  heavy: true,
  summary:
    "A quote of the running instance. With a nonce its report data covers the nonce, the TLS leaf and the config " +
    "document; without one it is zero.",
  request: {
    query: z.object({
      nonce: z
        .string()
        .regex(/^([0-9a-fA-F]{2}){16,32}$/, "must be 16 to 32 bytes of hex")
        .optional()
        .meta({ description: "16 to 32 bytes of hex." }),
    }),
  },
  response: z.looseObject({ quote: z.string(), event_log: z.string(), vm_config: z.string() }),
  errors: ["executor_unavailable", "attestation_unavailable"],
  example: { query: { nonce: "ab".repeat(16) }, response: { quote: "04", event_log: "[]", vm_config: "{}" } },
});

const evidences = defineRoute({
  ...page,
  path: "/evidences/",
  summary: "The evidence files, as a listing.",
  errors: ["attestation_unavailable"],
  example: { response: '<a href="sha256sum.txt">sha256sum.txt</a>' },
});

const evidence = defineRoute({
  ...page,
  path: "/evidences/:file",
  summary: "One evidence file: sha256sum.txt, quote.json, acme-account.json, cert-<domain>.pem.",
  request: {
    params: z.object({ file: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, "must be a file's name") }),
  },
  answers: "application/octet-stream",
  errors: ["evidence_not_found", "attestation_unavailable"],
  example: { params: { file: "sha256sum.txt" }, response: `${"ab".repeat(32)}  quote.json` },
});

const billingPage = defineRoute({
  ...page,
  path: "/billing",
  summary: "Leads to the dashboard's Credit screen (302).",
  example: { response: "" },
});

const home = defineRoute({
  ...page,
  path: "/",
  summary: "The dashboard.",
  example: { response: "<!doctype html>" },
});

const dashboardFile = defineRoute({
  ...page,
  path: "/assets/:file",
  summary: "A file of the dashboard, named by its content.",
  request: { params: z.object({ file: z.string().max(128) }) },
  answers: "application/octet-stream",
  errors: ["route_not_found"],
  example: { params: { file: "index-B2x9.js" }, response: "" },
});

const docs = defineRoute({
  ...page,
  path: "/docs",
  summary: "The documentation: its pages; with `Accept: text/markdown` as a list for programs.",
  errors: ["route_not_found"],
  example: { response: "<!doctype html>" },
});

const docsPage = defineRoute({
  ...page,
  path: "/docs/:page",
  summary:
    "A page of the documentation; with `.md`, or with `Accept: text/markdown`, its source. `/docs/errors#<code>` is " +
    "the `type` of every error.",
  request: { params: z.object({ page: z.string().regex(/^[a-z][a-z-]{0,63}(\.md)?$/, "must be a page's name") }) },
  errors: ["route_not_found"],
  example: { params: { page: "errors" }, response: "<!doctype html>" },
});

const llms = defineRoute({
  ...page,
  path: "/llms.txt",
  summary: "What programs that read documentation should read first.",
  answers: "text/plain",
  errors: ["route_not_found"],
  example: { response: "# Keywright" },
});

const llmsFull = defineRoute({
  ...page,
  path: "/llms-full.txt",
  summary: "The same with every page of the documentation.",
  answers: "text/plain",
  errors: ["route_not_found"],
  example: { response: "# Keywright" },
});

const skill = defineRoute({
  ...page,
  path: "/SKILL.md",
  summary: "A skill for agents: from nothing to a signature, and where to look.",
  answers: "text/markdown",
  errors: ["route_not_found"],
  example: { response: "# Keywright" },
});

const packageFile = defineRoute({
  ...page,
  path: "/packages/:file",
  heavy: true,
  summary:
    "The SDK, the command line and the MCP server as an npm package, `keywright-<version>.tgz`, for `npm install`" +
    " and `npx`. Its hash is `packages` of the config document.",
  request: { params: z.object({ file: z.string().regex(/^[a-z][a-z0-9.-]{0,63}\.tgz$/, "must be a file's name") }) },
  answers: "application/gzip",
  errors: ["route_not_found"],
  example: { params: { file: "keywright-0.1.0.tgz" }, response: "" },
});

const openapi = defineRoute({
  ...origin,
  at: undefined,
  path: "/openapi.json",
  aliases: [{ method: "GET", at: "origin", path: "/openapi.json" }],
  summary: "This description (OpenAPI 3.1).",
  response: z.looseObject({ openapi: z.string() }),
  answers: "application/json",
  example: { response: { openapi: "3.1.0" } },
});

const viewer = defineRoute({
  ...page,
  at: undefined,
  path: "/swagger-ui",
  summary: "The interactive viewer of this description.",
  example: { response: "<!doctype html>" },
});

const viewerFile = defineRoute({
  ...page,
  at: undefined,
  path: "/swagger-ui/:file",
  summary: "A file of the viewer.",
  request: { params: z.object({ file: z.string().max(128) }) },
  answers: "application/octet-stream",
  errors: ["route_not_found"],
  example: { params: { file: "swagger-ui.css" }, response: "" },
});

export const serviceRoutes = {
  health,
  ready,
  info,
  attestation,
  evidences,
  evidence,
  billingPage,
  home,
  dashboardFile,
  docs,
  docsPage,
  llms,
  llmsFull,
  skill,
  packageFile,
  openapi,
  viewer,
  viewerFile,
};
