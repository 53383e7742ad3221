import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { startProcess, waitUntil, type ManagedProcess } from "./processes";

/**
 * Anvil's first test account: the deployer and contract admin of every development chain. Its key is public knowledge.
 */
export const DEVELOPMENT_DEPLOYER_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
/** Anvil's second test account, which deploys only the allow-list. */
export const DEVELOPMENT_ALLOWLIST_DEPLOYER_KEY = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
export const DEVELOPMENT_CHAIN_ID = 31_337n;

export interface DevelopmentChain {
  readonly rpcUrl: string;
  readonly process: ManagedProcess;
}

export interface ChainOptions {
  readonly port: number;
  /** Keeps the chain's state between runs; without it the state is discarded at the end. */
  readonly stateFile?: string;
  readonly chainId?: bigint;
  readonly extraArgs?: readonly string[];
  /** How many blocks back the state can be asked for; each is a whole copy in the node's memory. */
  readonly statesKept?: number;
  /** How many blocks back transactions are known; the node keeps their traces. Default: all. */
  readonly blocksKept?: number;
}

/** Starts a local EVM node that mines each transaction at once. */
export async function startChain({
  port,
  stateFile,
  chainId = DEVELOPMENT_CHAIN_ID,
  extraArgs = [],
  statesKept = 128,
  blocksKept,
}: ChainOptions): Promise<DevelopmentChain> {
  const rpcUrl = `http://127.0.0.1:${port}`;
  const state = stateFile === undefined ? [] : ["--state", stateFile, "--state-interval", "5"];
  const args = [
    "--host",
    "127.0.0.1",
    "--port",
    String(port),
    "--chain-id",
    String(chainId),
    "--hardfork",
    "prague",
    "--quiet",
    // Otherwise it writes every older state to disk: gigabytes an hour.
    "--prune-history",
    String(statesKept),
    ...(blocksKept === undefined ? [] : ["--transaction-block-keeper", String(blocksKept)]),
    ...state,
    ...extraArgs,
  ];
  const node = startProcess({
    name: "chain",
    command: anvilBinary(),
    args,
    env: { PATH: process.env.PATH },
    onLine: () => undefined,
  });
  try {
    await waitUntil("the local chain", () => answers(rpcUrl), { timeoutMs: 15_000, died: node.died });
  } catch (error) {
    await node.stop();
    throw error;
  }
  return { rpcUrl, process: node };
}

/** The binary of the npm package; on platforms it does not cover, `anvil` from the PATH. */
export function anvilBinary(): string {
  const platform = `anvil-${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;
  try {
    return join(dirname(createRequire(__filename).resolve(`@foundry-rs/${platform}/package.json`)), "bin", "anvil");
  } catch {
    return "anvil";
  }
}

async function answers(rpcUrl: string): Promise<boolean> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_chainId", params: [] });
  const response = await fetch(rpcUrl, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
    signal: AbortSignal.timeout(1_000),
  });
  return response.ok;
}
