import { existsSync, readFileSync } from "node:fs";
import { JsonRpcProvider } from "ethers";
import { parseAddress, type Address } from "../../protocol/ids";

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
  const file = process.env.DEPLOYMENT_FILE;
  const text =
    process.env.CONTRACT_ADDRESS ??
    (file && existsSync(file)
      ? (JSON.parse(readFileSync(file, "utf8")) as { contractAddress: string }).contractAddress
      : "");
  return parseAddress(text) ?? usageError("CONTRACT_ADDRESS (or DEPLOYMENT_FILE) does not name the account contract.");
}

export async function withProvider<T>(work: (provider: JsonRpcProvider) => Promise<T>): Promise<T> {
  const [url] = setting("RPC_URLS").split(",");
  const provider = new JsonRpcProvider(url, undefined, { staticNetwork: true, cacheTimeout: -1 });
  try {
    return await work(provider);
  } finally {
    provider.destroy();
  }
}

export function addressArgument({ args }: Invocation): Address {
  return parseAddress(args[0] ?? "") ?? usageError("This command takes an address.");
}

export function countArgument({ args }: Invocation): number {
  const count = Number(args[0]);
  return Number.isInteger(count) && count >= 0 && count <= 1024
    ? count
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
