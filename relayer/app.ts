/** The HTTP API: every endpoint of the route table behind one middleware chain. */
import cors from "@koa/cors";
import Router from "@koa/router";
import Koa from "koa";
import { KeywrightError } from "../protocol/errors";
import { ROUTE_NAMES, endpointsOf, routeOf, type Endpoint } from "../protocol/http";
import type { Logger } from "../protocol/log";
import { RECEIPT_HEADER } from "../protocol/receipt";
import type { Handler, Handlers } from "./middleware/call";
import { requestContext, type RelayerMiddleware, type RelayerState, type RequestFacts } from "./middleware/context";
import { problems } from "./middleware/problems";
import { serve, type ServeDeps } from "./middleware/serve";

export interface AppOptions extends ServeDeps {
  readonly handlers: Handlers;
  readonly log: Logger;
  readonly serviceName: string;
  /** Number of proxies in front whose X-Forwarded-For entries are trusted. */
  readonly trustedProxyHops: number;
  /** Proxy to the double of the payment processor; only in development and tests. */
  readonly cardDouble?: RelayerMiddleware | undefined;
  readonly onAnswered: (facts: RequestFacts) => void;
}

const REQUEST_HEADERS = [
  "Authorization",
  "Content-Type",
  "Idempotency-Key",
  "X-Account",
  "X-Api-Key",
  "X-Correlation-Id",
  "X-Identity-Token",
  "X-Wallet-Auth",
];
const ANSWER_HEADERS = [
  "X-Request-Id",
  "X-Correlation-Id",
  "X-Total-Count",
  "X-Account",
  "Retry-After",
  RECEIPT_HEADER,
];

export function createApp(options: AppOptions): Koa<RelayerState> {
  const app = new Koa<RelayerState>({ proxy: options.trustedProxyHops > 0, maxIpsCount: options.trustedProxyHops });
  const router = routerOf(options);
  app.on("error", (error: unknown) => options.log.warn({ err: error }, "an answer could not be sent"));
  app.use(requestContext(options.log, options.onAnswered));
  app.use(
    cors({
      allowMethods: ["GET", "HEAD", "POST", "OPTIONS"],
      allowHeaders: REQUEST_HEADERS,
      exposeHeaders: ANSWER_HEADERS,
      maxAge: 600,
    }),
  );
  app.use(problems(options.log));
  if (options.cardDouble !== undefined) app.use(options.cardDouble);
  app.use(directly(router));
  app.use(router.routes());
  app.use(unmatchedRequests(router));
  return app;
}

export function routerOf(options: AppOptions): Router<RelayerState> {
  const router = new Router<RelayerState>({ sensitive: true });
  for (const endpoint of allEndpoints(options.serviceName)) register(router, endpoint, middlewareOf(endpoint, options));
  return router;
}

export const allEndpoints = (serviceName: string): Endpoint[] =>
  ROUTE_NAMES.flatMap((name) => endpointsOf(name, serviceName));

function middlewareOf({ name, alias }: Endpoint, options: AppOptions): RelayerMiddleware {
  return serve(name, options.handlers[name] as Handler<typeof name>, options, alias);
}

function register(router: Router<RelayerState>, { name, method, path }: Endpoint, middleware: RelayerMiddleware): void {
  router.register(path, [method], middleware as Parameters<typeof router.register>[2]);
  // Koa's router answers HEAD with the GET handler: exclude handlers with effects.
  const layer = router.stack.at(-1);
  if (layer !== undefined && routeOf(name).effect) layer.methods = layer.methods.filter((one) => one !== "HEAD");
}

/** Most requests name a path without parameters: found at once, where the router tries one pattern after the other. */
function directly({ stack }: Router<RelayerState>): RelayerMiddleware {
  const known = new Map<string, RelayerMiddleware>();
  for (const {
    path,
    methods,
    stack: [middleware],
  } of stack)
    for (const method of String(path).includes(":") ? [] : methods)
      if (!known.has(`${method} ${path}`)) known.set(`${method} ${path}`, middleware as RelayerMiddleware);
  return (ctx, next) => {
    ctx["params"] = {};
    return known.get(`${ctx.method} ${ctx.path}`)?.(ctx, next) ?? next();
  };
}

/** After the routes: 404 for unknown paths, 405 with `Allow` for the wrong method, 204 for a plain OPTIONS. */
function unmatchedRequests(router: Router<RelayerState>): RelayerMiddleware {
  return async (ctx) => {
    const { path } = router.match(ctx.path, ctx.method);
    if (path.length === 0)
      throw new KeywrightError("route_not_found", "There is no such route; /core/v1/openapi.json lists them all.");
    const allowed = [...new Set(path.flatMap((layer) => layer.methods))].sort();
    ctx.set("Allow", allowed.join(", "));
    if (ctx.method !== "OPTIONS")
      throw new KeywrightError("method_not_allowed", `This route answers ${allowed.join(", ")}.`, { allow: allowed });
    ctx.status = 204;
    ctx.body = null;
  };
}
