/** The root key of executors in tests, and the commitment with which their chains' contracts are deployed. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { rootIdentityOf } from "../../executor/keys/rootIdentity";

export const TEST_ROOT = Buffer.alloc(32, 0xc7);
export const TEST_ROOT_COMMITMENT = rootIdentityOf(TEST_ROOT).commitment;

/** Puts the root key where an executor without a TEE looks for it, unless there is one. */
export function writeTestRoot(file: string): void {
  if (existsSync(file)) return;
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(file, TEST_ROOT, { mode: 0o600 });
}
