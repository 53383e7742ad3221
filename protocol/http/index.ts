/**
 * The route table: the whole HTTP interface in one value. Router, guard, OpenAPI document and SDK are built from it.
 * Source: specification §4; wire.
 */
import { routeWord } from "../serviceName";
import { accountRoutes } from "./accounts";
import { actionRoutes } from "./actions";
import { billingRoutes } from "./billing";
import { configurationRoutes } from "./configuration";
import { groupRoutes } from "./groups";
import { historyRoutes } from "./history";
import { API_PREFIX, type Route } from "./route";
import { relayRoutes } from "./relay";
import { runRoutes } from "./runs";
import { serviceRoutes } from "./service";
import { signatureRoutes } from "./signatures";
import { usageKeyRoutes } from "./usageKeys";
import { walletRoutes } from "./wallets";

export const ROUTES = {
  ...accountRoutes,
  ...usageKeyRoutes,
  ...groupRoutes,
  ...walletRoutes,
  ...actionRoutes,
  ...runRoutes,
  ...signatureRoutes,
  ...relayRoutes,
  ...configurationRoutes,
  ...billingRoutes,
  ...historyRoutes,
  ...serviceRoutes,
};
export type RouteName = keyof typeof ROUTES;
export type RouteOf<N extends RouteName> = (typeof ROUTES)[N];

export const ROUTE_NAMES = Object.keys(ROUTES) as RouteName[];

/** The table without its entries' own types, for code that walks it. */
export const routeOf = (name: RouteName): Route => ROUTES[name] as Route;

export interface Endpoint {
  readonly name: RouteName;
  readonly method: "GET" | "POST";
  /** From the origin, parameters as `:name`. */
  readonly path: string;
  readonly deprecated: boolean;
}

/** Where a route is served: its own place first, then its aliases. */
export function endpointsOf(name: RouteName, serviceName: string): Endpoint[] {
  const route = routeOf(name);
  const prefix = route.at === "origin" ? "" : API_PREFIX;
  const places = [{ method: route.method, path: route.path, deprecated: route.deprecated }, ...(route.aliases ?? [])];
  const endpoints = places.map(({ method, path, deprecated }) => ({
    name,
    method,
    path: prefix + path.replace("{svc}", routeWord(serviceName)),
    deprecated: deprecated === true,
  }));
  return endpoints.filter((one, at) => endpoints.findIndex((other) => other.method === one.method && other.path === one.path) === at);
}

export * from "./errorSets";
export * from "./problem";
export * from "./route";
export * from "./fields";
export { RUN_OUTCOMES, type RunOutcome } from "./runs";
export { exampleEnvelope } from "./signatures";
