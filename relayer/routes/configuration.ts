/** The service's configuration: chain, payers, limits and prices. */
import { VERSION } from "../../protocol/version";
import { SHARED_LIMITS, TRIGGER_LIMITS, WEBHOOK_LIMITS, WIRE_LIMITS } from "../../protocol/limits";
import type { configurationRoutes as routes } from "../../protocol/http/configuration";
import type { HandlersOf } from "../middleware/call";
import type { RouteDeps } from "./deps";

export function configurationRoutes({
  chain,
  executorInfo,
  prices,
  rateLimits,
  typedDataDomain,
}: RouteDeps): HandlersOf<keyof typeof routes> {
  const { network } = chain;
  return {
    getNodeChainConfig: async () => ({
      contract_address: network.contractAddress,
      chain_id: Number(network.chainId),
      chain_name: network.chainName,
      is_evm: true,
      testnet: network.testnet,
      token: network.token,
      key_namespace: network.keyNamespace,
      forwarder_address: await chain.forwarder(),
      budgets_address: network.budgetsAddress,
      typed_data_domain: {
        name: typedDataDomain.name,
        version: typedDataDomain.version,
        chainId: String(typedDataDomain.chainId),
      },
    }),

    getApiPayers: async () => [...(await chain.apiPayers())],
    getAdminApiPayer: async () => chain.adminApiPayer(),

    limits: async () => {
      const { limits, privateKeysAllowed } = await executorInfo();
      const inForce = {
        run: limits,
        shared: { ...SHARED_LIMITS },
        request: { ...WIRE_LIMITS },
        rate: { ...rateLimits },
        triggers: { ...TRIGGER_LIMITS },
        webhooks: { ...WEBHOOK_LIMITS },
      };
      return { ...inForce, prices: { ...prices }, private_keys_allowed: privateKeysAllowed };
    },

    version: async () => ({ name: "keywright", version: VERSION, commit_version: "", submodule_versions: [] }),
  };
}
