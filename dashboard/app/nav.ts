/** The screens, in groups, as the sidebar and the search for screens show them. */
import { VERSION } from "../../protocol/version";
import type { IconName } from "../components/icons";

export interface Place {
  readonly to: string;
  readonly name: string;
  readonly icon: IconName;
}

export interface NavGroup {
  /** Empty for places above all groups. */
  readonly title: string;
  readonly places: readonly Place[];
}

export const NAV: readonly NavGroup[] = [
  { title: "", places: [{ to: "/", name: "Overview", icon: "overview" }] },
  {
    title: "Keys and code",
    places: [
      { to: "/pkps", name: "PKPs", icon: "pkps" },
      { to: "/groups", name: "Groups", icon: "groups" },
      { to: "/actions", name: "Actions", icon: "actions" },
      { to: "/policies", name: "Policies", icon: "policies" },
      { to: "/usage-keys", name: "Usage keys", icon: "usageKeys" },
    ],
  },
  {
    title: "Run",
    places: [
      { to: "/runner", name: "Runner", icon: "runner" },
      { to: "/triggers", name: "Triggers", icon: "triggers" },
      { to: "/budgets", name: "Budgets", icon: "budgets" },
      { to: "/activity", name: "Activity", icon: "activity" },
    ],
  },
  {
    title: "Settings",
    places: [
      { to: "/credit", name: "Credit", icon: "credit" },
      { to: "/webhooks", name: "Webhooks", icon: "webhooks" },
      { to: "/trust", name: "Trust", icon: "trust" },
      { to: "/account", name: "Account", icon: "account" },
    ],
  },
];

export const PLACES: readonly Place[] = NAV.flatMap(({ places }) => places);

/** What the service serves besides, each in a tab of its own. */
export const REFERENCES = [
  { href: "/docs", name: "Docs" },
  { href: "/core/v1/swagger-ui", name: "API reference" },
  { href: "/docs/sdk", name: "SDK and CLI" },
  { href: `/packages/keywright-${VERSION}.tgz`, name: "Package" },
] as const;
