/** Calls and their results, in the terms of the contract. */
import { ethers } from "ethers";

/** The error that a call must end with. */
export class Broken extends Error {
  constructor(
    name: string,
    readonly args: readonly unknown[],
  ) {
    super(name);
  }
}
export type Emitted = [name: string, ...args: unknown[]];
/** A call inside `multicall` or `tryMulticall`, whose arguments are lists of these. */
export type Inner = readonly [name: string, args: readonly unknown[]];
export const isBatch = (name: string): boolean => name === "multicall" || name === "tryMulticall";
/** In the contract's order. */
export const SCOPES = [
  "execute",
  "createPkps",
  "createGroups",
  "deleteGroups",
  "manageActions",
  "addPkp",
  "removePkp",
  "ownerOnly",
] as const;
export type Scope = (typeof SCOPES)[number];

export const packedId = (wallet: string): bigint => BigInt(ethers.solidityPackedKeccak256(["address"], [wallet]));
