import { existsSync, readFileSync } from "node:fs";
import { FetchRequest, JsonRpcProvider } from "ethers";
import { parseAddress, type Address } from "../../protocol/ids";
import type { Deployment } from "../deployment";
import { shortOf } from "../prompt";

const ANSWER_MS = 10_000;

export interface Invocation {
  readonly args: readonly string[];
  /** Sign and send instead of printing the transaction. */
  readonly sign: boolean;
  readonly print: (line: string) => void;
}

export interface Command {
  /** As shown in the usage. */
  readonly args: string;
  readonly help: string;
  readonly run: (invocation: Invocation) => Promise<void>;
}

/** The command line is wrong. */
export class UsageError extends Error {}

export function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "") throw new UsageError(`${name} is not set.`);
  return value;
}

export function contractAddress(): Address {
  const text = process.env.CONTRACT_ADDRESS ?? deploymentFile()?.contractAddress ?? "";
  return parseAddress(text) ?? usageError("CONTRACT_ADDRESS (or DEPLOYMENT_FILE) does not name the account contract.");
}

export function deploymentFile(): Deployment | undefined {
  const { DEPLOYMENT_FILE: file } = process.env;
  return file && existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Deployment) : undefined;
}

export async function withProvider<T>(work: (provider: JsonRpcProvider) => Promise<T>): Promise<T> {
  const [url = ""] = setting("RPC_URLS").split(",");
  const connection = new FetchRequest(url);
  connection.timeout = ANSWER_MS;
  const provider = new JsonRpcProvider(connection, undefined, { staticNetwork: true, cacheTimeout: -1 });
  try {
    await requireChain(provider);
    return await work(provider);
  } finally {
    provider.destroy();
  }
}

/** Asked once: unasked, the library would look for the network of an endpoint that does not answer for ever. */
async function requireChain(provider: JsonRpcProvider): Promise<void> {
  const { chainId } = await provider._detectNetwork().catch((error: unknown) => {
    throw new Error(`The first of RPC_URLS does not answer: ${shortOf(error)}`);
  });
  const expected = process.env.CHAIN_ID || deploymentFile()?.chainId;
  if (expected !== undefined && expected !== String(chainId))
    usageError(`The first of RPC_URLS is on chain ${chainId}, not ${expected}.`);
}

export function addressArgument({ args }: Invocation): Address {
  return parseAddress(args[0] ?? "") ?? usageError("This command takes an address.");
}

export function countArgument({ args }: Invocation): number {
  const [text = ""] = args;
  return /^[0-9]{1,4}$/.test(text) && Number(text) <= 1024
    ? Number(text)
    : usageError("This command takes a number from 0 to 1024.");
}

export function usageError(message: string): never {
  throw new UsageError(message);
}

/** Pads columns to their widest cell. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows.reduce<number[]>(
    (all, row) => row.map((cell, index) => Math.max(all[index] ?? 0, cell.length)),
    [],
  );
  return rows
    .map((row) =>
      row
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
