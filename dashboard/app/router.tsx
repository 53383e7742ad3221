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
type Load<Name extends string> = () => Promise<Record<Name, () => ReactNode>>;
const later = <Name extends string>(load: Load<Name>, name: Name) =>
  lazyRouteComponent(load, name) as unknown as () => ReactNode;
const screen = <const Path extends string, Name extends string>(path: Path, load: Load<Name>, name: Name) =>
  at(path, later(load, name));

/** A question that a link can ask: a key's hash, a CID and a PKP's address. */
type WhyAsked = Partial<Record<"key" | "action" | "pkp", string>>;
const textIn = (search: Record<string, unknown>, name: keyof WhyAsked): WhyAsked =>
  typeof search[name] === "string" ? { [name]: search[name] } : {};

/** Each screen but the first is loaded when opened. Hash routing, so that the server serves one page only. */
const routeTree = root.addChildren([
  at("/", Overview),
  screen("/pkps", () => import("../screens/pkps/Pkps"), "Pkps"),
  screen("/pkps/$pkp", () => import("../screens/pkps/Pkp"), "Pkp"),
  screen("/groups", () => import("../screens/groups/Groups"), "Groups"),
  screen("/groups/$group", () => import("../screens/groups/Group"), "Group"),
  screen("/actions", () => import("../screens/actions/Actions"), "Actions"),
  screen("/actions/$action", () => import("../screens/actions/ActionPage"), "ActionPage"),
  screen("/policies", () => import("../screens/policies/Policies"), "Policies"),
  screen("/usage-keys", () => import("../screens/usageKeys/UsageKeys"), "UsageKeys"),
  screen("/runner", () => import("../screens/runner/Runner"), "Runner"),
  screen("/triggers", () => import("../screens/triggers/Triggers"), "Triggers"),
  screen("/budgets", () => import("../screens/budgets/Budgets"), "Budgets"),
  screen("/activity", () => import("../screens/activity/Activity"), "Activity"),
  screen("/activity/$run", () => import("../screens/activity/RunPage"), "RunPage"),
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
  screen("/credit", () => import("../screens/credit/Credit"), "Credit"),
  screen("/webhooks", () => import("../screens/webhooks/Webhooks"), "Webhooks"),
  screen("/trust", () => import("../screens/trust/Trust"), "Trust"),
  screen("/account", () => import("../screens/account/Account"), "Account"),
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
