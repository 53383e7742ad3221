/** Network, payers, limits and prices of the service. Source: docs/conformance.md §2, §4, §8. */
import { z } from "zod";
import type { RunLimits } from "../limits";
import { cents, count, outAddress, outHash, reading } from "./fields";
import { defineRoute } from "./route";

const wallet = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const read = { ...reading, tag: "Configuration", auth: "none" } as const;

const getNodeChainConfig = defineRoute({
  ...read,
  path: "/get_node_chain_config",
  summary: "The chain and contract this service governs keys by, and the domain typed data is signed under.",
  errors: ["chain_unavailable"],
  response: z.strictObject({
    contract_address: outAddress,
    chain_id: count,
    chain_name: z.string(),
    is_evm: z.literal(true),
    testnet: z.boolean(),
    token: z.string(),
    key_namespace: outHash,
    forwarder_address: outAddress.meta({
      description: "The ERC-2771 forwarder through which an owner may write by signature.",
    }),
    budgets_address: outAddress.meta({
      description: "The contract that counts what actions spend: its address follows from the contract's.",
    }),
    typed_data_domain: z.strictObject({ name: z.string(), version: z.string(), chainId: z.string() }),
  }),
  example: {
    response: {
      contract_address: wallet,
      chain_id: 31337,
      chain_name: "development",
      is_evm: true,
      testnet: true,
      token: "ETH",
      key_namespace: `0x${"3c".repeat(32)}`,
      forwarder_address: wallet,
      budgets_address: wallet,
      typed_data_domain: { name: "Keywright ChainSecured", version: "1", chainId: "31337" },
    },
  },
});

const getApiPayers = defineRoute({
  ...read,
  path: "/get_api_payers",
  summary: "The addresses that send API-mode writes, from the contract.",
  response: z.array(outAddress),
  errors: ["chain_unavailable"],
  example: { response: [wallet] },
});

const getAdminApiPayer = defineRoute({
  ...read,
  path: "/get_admin_api_payer",
  summary: "The address that funds the API payers, from the contract.",
  response: outAddress,
  errors: ["chain_unavailable"],
  example: { response: wallet },
});

const numbers = z.record(z.string(), z.number());

/** The limits of a run, under the names that programs for Lit's service read. */
function asClientConfig(answer: unknown): z.infer<typeof clientConfig> {
  const { run } = answer as { run: RunLimits };
  return {
    timeout_ms: run.wallMs,
    async_timeout_ms: run.wallMs,
    memory_limit_mb: run.heapMiB,
    max_code_length: run.codeBytes,
    max_response_length: run.responseBytes,
    max_console_log_length: run.logsBytes,
    max_fetch_count: run.fetches,
    max_get_keys_count: run.privateKeyReads,
    // A run is never executed twice; its answer comes with the run's end.
    max_retries: 0,
    client_timeout_ms_buffer: 0,
  };
}
const clientConfig = z.record(z.string(), z.number());
const CLIENT_CONFIG_EXAMPLE = { timeout_ms: 60_000, memory_limit_mb: 128, max_fetch_count: 50 };

/** What can be set for a run: there are no other names that a program could ask for. */
const asConfigKeys = (answer: unknown) => ({ keys: Object.keys((answer as { run: object }).run) });

const limits = defineRoute({
  ...read,
  path: "/limits",
  aliases: [
    {
      method: "GET",
      path: "/get_lit_action_client_config",
      answer: asClientConfig,
      answered: { response: clientConfig, example: CLIENT_CONFIG_EXAMPLE },
    },
    {
      method: "GET",
      path: "/get_chain_config_keys",
      answer: asConfigKeys,
      answered: { response: z.strictObject({ keys: z.array(z.string()) }), example: { keys: ["wallMs"] } },
    },
  ],
  summary: "Every limit and price in force.",
  response: z.strictObject({
    run: numbers.meta({ description: "What one run may use." }),
    shared: numbers.meta({ description: "Limits shared by all concurrent runs; one account holds a quarter at most." }),
    request: numbers.meta({ description: "What one request may carry." }),
    rate: numbers.meta({ description: "Requests per window." }),
    triggers: numbers.meta({ description: "Of triggers; see docs/triggers.md." }),
    webhooks: numbers.meta({ description: "Of webhooks; see docs/webhooks.md." }),
    prices: z.strictObject({ managementWriteCents: cents, runSecondCents: cents }),
    private_keys_allowed: z.boolean().meta({ description: "Whether actions may call getPrivateKey." }),
  }),
  errors: ["executor_unavailable"],
  example: {
    response: {
      run: { wallMs: 60_000, heapMiB: 128 },
      shared: { fetchesUnderWay: 256 },
      request: { bodyBytes: 1_048_576, pageSizeMax: 1000 },
      rate: { keyRequestsPerSecond: 50 },
      triggers: { perAccount: 1_000 },
      webhooks: { perAccount: 16 },
      prices: { managementWriteCents: 1, runSecondCents: 1 },
      private_keys_allowed: true,
    },
  },
});

const version = defineRoute({
  ...read,
  path: "/version",
  aliases: [{ method: "GET", at: "origin", path: "/version" }],
  summary: "What this service is, and its version. What it runs is proved by /attestation, not by this.",
  response: z.strictObject({
    name: z.string(),
    version: z.string(),
    commit_version: z.string().meta({ description: "Empty: `/info` tells what runs, and proves it." }),
    submodule_versions: z.array(z.tuple([z.string(), z.string()])),
  }),
  example: { response: { name: "keywright", version: "0.1.0", commit_version: "", submodule_versions: [] } },
});

export const configurationRoutes = { getNodeChainConfig, getApiPayers, getAdminApiPayer, limits, version };
