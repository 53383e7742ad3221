/**
 * The config document: the settings that the compose hash cannot cover because they are environment values. A quote
 * over its hash binds the running service to it. It must not contain secrets: of RPC and gateway URLs it shows only the
 * host.
 */
import type { EventChains } from "../../protocol/eventChains";
import type { Address, Hash32 } from "../../protocol/ids";
import type { RootStatement } from "../../protocol/rootKey";
import { defined } from "../../protocol/defined";

export const CONFIG_DOCUMENT_VERSION = 1;

export interface ConfigFacts {
  serviceName: string;
  chainId: bigint;
  contractAddress: Address;
  keyNamespace: Hash32;
  /** The Ed25519 public key of the executor's signed statements about public keys: 0x and 64 hex digits. */
  statementKey: string;
  /** Which root derives the keys, and its word for the statement key. */
  root: RootStatement;
  rpcUrls: readonly string[];
  /** Of further chains whose logs fire triggers. */
  eventChains?: EventChains;
  /** How many endpoints must agree on a read. */
  rpcQuorum: number;
  /** 0 = not checked (development chain). */
  maxHeadAgeSeconds: number;
  /** How deep in the chain a lease must be before anything is spent of it: budgets hold up to reorganizations of it. */
  leaseConfirmations: number;
  identityIssuers: readonly { issuer: string; jwksUrl: string; audience: string }[];
  limits: Readonly<Record<string, number>>;
  prices: Readonly<Record<string, number>>;
  /** Feature switches by name: `privateKeys` says whether actions may read private keys. */
  features: Readonly<Record<string, boolean>>;
  sandbox: { readonly level: string; readonly missing: readonly string[] };
  /** Where the code and modules of guests come from, and where their fetches may go; absent = not configured. */
  moduleOrigin?: string;
  /** What actions get from getRpcUrl, by the chain's name. */
  actionRpcUrls?: Readonly<Record<string, string>>;
  ipfsGateways?: readonly string[];
  fetchAllowHosts?: readonly string[];
  fetchPorts?: readonly number[];
  /** Hashes of the packages that the relayer serves. */
  packages?: Readonly<Record<string, string>>;
}

export type ConfigDocument = Readonly<Record<string, unknown>>;

export function buildConfigDocument(facts: ConfigFacts): ConfigDocument {
  return {
    version: CONFIG_DOCUMENT_VERSION,
    service_name: facts.serviceName,
    chain_id: Number(facts.chainId),
    contract_address: facts.contractAddress,
    key_namespace: facts.keyNamespace,
    statement_key: facts.statementKey,
    root: { ...facts.root },
    rpc: {
      ...{ hosts: facts.rpcUrls.map(hostOf), quorum: facts.rpcQuorum, max_head_age_seconds: facts.maxHeadAgeSeconds },
      ...eventHosts(facts.eventChains),
    },
    budgets: { lease_confirmations: facts.leaseConfirmations },
    identity_issuers: facts.identityIssuers.map(({ issuer, jwksUrl, audience }) => ({
      issuer,
      jwks_url: jwksUrl,
      audience,
    })),
    limits: { ...facts.limits },
    prices: { ...facts.prices },
    features: { ...facts.features },
    sandbox: { level: facts.sandbox.level, missing: [...facts.sandbox.missing] },
    ...defined({ packages: facts.packages }),
    ...codeSources(facts),
  };
}

function eventHosts(chains: EventChains = new Map()): ConfigDocument {
  if (chains.size === 0) return {};
  return { event_hosts: Object.fromEntries([...chains].map(([id, urls]) => [id, urls.map(hostOf)])) };
}

function codeSources(facts: ConfigFacts): ConfigDocument {
  return defined({
    module_origin_host: facts.moduleOrigin && hostOf(facts.moduleOrigin),
    action_rpc_hosts: facts.actionRpcUrls && hostsByName(facts.actionRpcUrls),
    ipfs_gateway_hosts: facts.ipfsGateways?.map(hostOf),
    fetch_allow_hosts: facts.fetchAllowHosts && [...facts.fetchAllowHosts],
    fetch_ports: facts.fetchPorts && [...facts.fetchPorts],
  });
}

function hostsByName(urls: Readonly<Record<string, string>>): Readonly<Record<string, string>> | undefined {
  const hosts = Object.entries(urls).map(([name, url]) => [name, hostOf(url)]);
  return hosts.length === 0 ? undefined : (Object.fromEntries(hosts) as Record<string, string>);
}

/** Only host and port: a path, query or user info may contain a provider's API key. */
function hostOf(url: string): string {
  return new URL(url).host;
}
