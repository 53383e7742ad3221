/** The root key without a TEE: a file, in development only. Created at the first start, readable by its owner only. */
import { randomBytes } from "node:crypto";
import { closeSync, constants, fstatSync, fsyncSync, mkdirSync, openSync, readSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { ROOT_KEY_BYTES } from "./derive";

const PRIVATE_FILE = 0o600;

/** The file is unusable; the message says what to do. */
export class RootKeyFileError extends Error {
  override readonly name = "RootKeyFileError";
}

/** The 32 bytes in `file`, which is created with mode 0600 when absent. The caller zero-fills the buffer. */
export function rootKeyFromFile(file: string): Buffer {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  return createRootKey(file) ?? readRootKey(file);
}

/** A random key for tests and one-off runs that store nothing. */
export function ephemeralRootKey(): Buffer {
  return randomBytes(ROOT_KEY_BYTES);
}

/** Undefined when the file exists: O_EXCL makes concurrent starts agree on one key. */
function createRootKey(file: string): Buffer | undefined {
  let handle: number;
  try {
    handle = openSync(
      file,
      constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
      PRIVATE_FILE,
    );
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return undefined;
    throw error;
  }
  const key = randomBytes(ROOT_KEY_BYTES);
  try {
    writeSync(handle, key);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  return key;
}

function readRootKey(file: string): Buffer {
  const handle = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    requirePrivate(file, fstatSync(handle).mode);
    const key = Buffer.alloc(ROOT_KEY_BYTES + 1);
    const length = readSync(handle, key, 0, key.length, 0);
    if (length !== ROOT_KEY_BYTES) {
      throw new RootKeyFileError(
        `${file} must hold exactly ${ROOT_KEY_BYTES} bytes. Restore it from a backup; without it no key of this ` +
          "service can be derived.",
      );
    }
    return key.subarray(0, ROOT_KEY_BYTES);
  } finally {
    closeSync(handle);
  }
}

function requirePrivate(file: string, mode: number): void {
  if ((mode & 0o077) === 0) return;
  throw new RootKeyFileError(
    `${file} may be read by others (mode ${(mode & 0o777).toString(8)}). Run chmod 600 on it and consider the key ` +
      "compromised.",
  );
}
