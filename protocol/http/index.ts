/**
 * The route table, which defines the whole HTTP interface. Router, guard, OpenAPI document and SDK are built from it.
 * Source: docs/conformance.md §4.
 */
import { routeWord } from "../serviceName";
import { accountRoutes } from "./accounts";
import { actionRoutes } from "./actions";
import { billingRoutes } from "./billing";
import { configurationRoutes } from "./configuration";
import { groupRoutes } from "./groups";
import { historyRoutes } from "./history";
import { API_PREFIX, type Alias, type Route } from "./route";
import { relayRoutes } from "./relay";
import { runRoutes } from "./runs";
import { serviceRoutes } from "./service";
import { signatureRoutes } from "./signatures";
import { triggerRoutes } from "./triggers";
import { usageKeyRoutes } from "./usageKeys";
import { walletRoutes } from "./wallets";
import { webhookRoutes } from "./webhooks";

export const ROUTES = {
  ...accountRoutes,
  ...usageKeyRoutes,
  ...groupRoutes,
  ...walletRoutes,
  ...actionRoutes,
  ...runRoutes,
  ...triggerRoutes,
  ...signatureRoutes,
  ...relayRoutes,
  ...configurationRoutes,
  ...billingRoutes,
  ...historyRoutes,
  ...webhookRoutes,
  ...serviceRoutes,
};
export type RouteName = keyof typeof ROUTES;
export type RouteOf<N extends RouteName> = (typeof ROUTES)[N];

export const ROUTE_NAMES = Object.keys(ROUTES) as RouteName[];

/** A route without its specific type, for code that iterates over the table. */
export const routeOf = (name: RouteName): Route => ROUTES[name] as Route;

export interface Endpoint {
  readonly name: RouteName;
  readonly method: "GET" | "POST";
  /** Path from the origin, with parameters as `:name`. */
  readonly path: string;
  readonly deprecated: boolean;
  /** Set for a name of an alias. */
  readonly alias?: Alias;
}

/** The endpoints of a route: its own first, then its aliases. */
export function endpointsOf(name: RouteName, serviceName: string): Endpoint[] {
  const route = routeOf(name);
  const place = ({ method, path, at, deprecated }: Pick<Route, "method" | "path" | "at" | "deprecated">) => ({
    name,
    method,
    path: (at === "origin" ? "" : API_PREFIX) + path.replace("{svc}", routeWord(serviceName)),
    deprecated: deprecated === true,
  });
  const named = (alias: Alias) => ({ ...place({ at: route.at, ...alias } as Alias), alias });
  const endpoints: Endpoint[] = [place(route), ...(route.aliases ?? []).map(named)];
  return endpoints.filter(
    (one, at) => endpoints.findIndex((other) => other.method === one.method && other.path === one.path) === at,
  );
}

export * from "./errorSets";
export * from "./problem";
export * from "./route";
export * from "./fields";
export type { RunOutcome } from "./runs";
