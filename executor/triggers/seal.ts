/**
 * What relayers store for triggers without being able to read or change it: AES-256-GCM under a key derived for the
 * account, bound to its use and the account.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { AccountId } from "../../protocol/ids";
import { parseJson } from "../../protocol/json";
import type { Keyring } from "../keys/keyring";

/** Sealed texts of one use never pass as those of the other. */
export type SealedUse = "definition" | "accepted hook";

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

type SealKeys = Pick<Keyring, "withTriggerSeal">;

const boundTo = (use: SealedUse, account: AccountId): Buffer => Buffer.from(`trigger ${use} v1 ${account}`, "ascii");

/** In base64. */
export function seal(keys: SealKeys, use: SealedUse, account: AccountId, value: object): string {
  return keys.withTriggerSeal(account, (key) => {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, key, nonce).setAAD(boundTo(use, account));
    const body = [nonce, cipher.update(JSON.stringify(value), "utf8"), cipher.final(), cipher.getAuthTag()];
    return Buffer.concat(body).toString("base64");
  });
}

/** The value; undefined if this keyholder's root did not seal the text for this use and account. */
export function unseal(keys: SealKeys, use: SealedUse, account: AccountId, text: string): unknown {
  const body = Buffer.from(text, "base64");
  if (body.length < NONCE_BYTES + TAG_BYTES) return undefined;
  return keys.withTriggerSeal(account, (key) => {
    const decipher = createDecipheriv(CIPHER, key, body.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
    decipher.setAAD(boundTo(use, account)).setAuthTag(body.subarray(-TAG_BYTES));
    const start = decipher.update(body.subarray(NONCE_BYTES, -TAG_BYTES));
    try {
      return parseJson(Buffer.concat([start, decipher.final()]).toString("utf8"));
    } catch {
      return undefined;
    }
  });
}
