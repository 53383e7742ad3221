/** All route handlers, assembled. */
import type { Handlers } from "../middleware/call";
import { accountRoutes } from "./accounts";
import { actionRoutes } from "./actions";
import { billingRoutes } from "./billing";
import { budgetRoutes } from "./budgets";
import { configurationRoutes } from "./configuration";
import type { RouteDeps } from "./deps";
import { explainRoutes } from "./explain";
import { exportRoutes } from "./exports";
import { groupRoutes } from "./groups";
import { historyRoutes } from "./history";
import { relayRoutes } from "./relay";
import { runRecordRoutes } from "./runRecords";
import { runRoutes } from "./runs";
import { serviceRoutes, type ServiceDeps } from "./service";
import { signatureRoutes } from "./signatures";
import { transparencyRoutes, type TransparencyDeps } from "./transparency";
import { triggerRoutes } from "./triggers";
import { usageKeyRoutes } from "./usageKeys";
import { walletRoutes } from "./wallets";
import { webhookRoutes } from "./webhooks";
import { Writes } from "./writes";

export type HandlerDeps = RouteDeps & TransparencyDeps & ServiceDeps;

export function createHandlers(deps: HandlerDeps): Handlers {
  const writes = new Writes(deps);
  return {
    ...accountRoutes(deps, writes),
    ...usageKeyRoutes(deps, writes),
    ...groupRoutes(deps, writes),
    ...walletRoutes(deps, writes),
    ...actionRoutes(deps, writes),
    ...runRoutes(deps),
    ...runRecordRoutes(deps),
    ...budgetRoutes(deps),
    ...explainRoutes(deps),
    ...triggerRoutes(deps, writes),
    ...signatureRoutes(deps),
    ...relayRoutes(deps, writes),
    ...configurationRoutes(deps),
    ...historyRoutes(deps),
    ...exportRoutes(deps),
    ...webhookRoutes(deps),
    ...billingRoutes(deps),
    ...transparencyRoutes(deps),
    ...serviceRoutes(deps),
  };
}
