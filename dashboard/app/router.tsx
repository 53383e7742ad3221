import {
  createHashHistory,
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  RouterProvider,
} from "@tanstack/react-router";
import { useMemo, type ReactNode } from "react";
import { ChangesProvider } from "../changes/ChangesProvider";
import { Overview } from "../screens/overview/Overview";
import { Missing, Shell } from "./Shell";

const root = createRootRoute({ component: Shell, notFoundComponent: Missing });
const at = <const Path extends string>(path: Path, component: () => ReactNode) =>
  createRoute({ getParentRoute: () => root, path, component });
const later = <Name extends string>(load: () => Promise<Record<Name, () => ReactNode>>, name: Name) =>
  lazyRouteComponent(load, name) as unknown as () => ReactNode;

/** A question that a link can ask: a key's hash, a CID and a PKP's address. */
type WhyAsked = Partial<Record<"key" | "action" | "pkp", string>>;
const textIn = (search: Record<string, unknown>, name: keyof WhyAsked): WhyAsked =>
  typeof search[name] === "string" ? { [name]: search[name] } : {};

/** Each screen but the first is loaded when opened. Hash routing, so that the server serves one page only. */
const routeTree = root.addChildren([
  at("/", Overview),
  at(
    "/pkps",
    later(() => import("../screens/pkps/Pkps"), "Pkps"),
  ),
  at(
    "/pkps/$pkp",
    later(() => import("../screens/pkps/Pkp"), "Pkp"),
  ),
  at(
    "/groups",
    later(() => import("../screens/groups/Groups"), "Groups"),
  ),
  at(
    "/groups/$group",
    later(() => import("../screens/groups/Group"), "Group"),
  ),
  at(
    "/actions",
    later(() => import("../screens/actions/Actions"), "Actions"),
  ),
  at(
    "/actions/$action",
    later(() => import("../screens/actions/ActionPage"), "ActionPage"),
  ),
  at(
    "/policies",
    later(() => import("../screens/policies/Policies"), "Policies"),
  ),
  at(
    "/usage-keys",
    later(() => import("../screens/usageKeys/UsageKeys"), "UsageKeys"),
  ),
  at(
    "/runner",
    later(() => import("../screens/runner/Runner"), "Runner"),
  ),
  at(
    "/triggers",
    later(() => import("../screens/triggers/Triggers"), "Triggers"),
  ),
  at(
    "/budgets",
    later(() => import("../screens/budgets/Budgets"), "Budgets"),
  ),
  at(
    "/activity",
    later(() => import("../screens/activity/Activity"), "Activity"),
  ),
  at(
    "/activity/$run",
    later(() => import("../screens/activity/RunPage"), "RunPage"),
  ),
  createRoute({
    getParentRoute: () => root,
    path: "/why",
    validateSearch: (search: Record<string, unknown>): WhyAsked => ({
      ...textIn(search, "key"),
      ...textIn(search, "action"),
      ...textIn(search, "pkp"),
    }),
    component: later(() => import("../screens/activity/Explain"), "Explain"),
  }),
  at(
    "/credit",
    later(() => import("../screens/credit/Credit"), "Credit"),
  ),
  at(
    "/webhooks",
    later(() => import("../screens/webhooks/Webhooks"), "Webhooks"),
  ),
  at(
    "/trust",
    later(() => import("../screens/trust/Trust"), "Trust"),
  ),
  at(
    "/account",
    later(() => import("../screens/account/Account"), "Account"),
  ),
]);

const routerOf = () =>
  createRouter({ routeTree, history: createHashHistory(), defaultPreload: "intent", scrollRestoration: true });

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof routerOf>;
  }
}

export function Screens(): ReactNode {
  const router = useMemo(routerOf, []);
  return (
    <ChangesProvider>
      <RouterProvider router={router} />
    </ChangesProvider>
  );
}
