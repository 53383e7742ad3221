/**
 * Encryption for actions, which store the ciphertext wherever they like: one string in, one string out.
 *
 *     ciphertext = "kw1." + base64url(nonce, 12 bytes ‖ AES-256-GCM ciphertext ‖ tag, 16 bytes)
 *
 * The key is derived for (account, PKP); both are also additional authenticated data, after the format's name.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { AccountId, PkpId } from "../../protocol/ids";
import { OpRefusal } from "./refusal";

const FORMAT = "kw1.";
const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export interface EncryptionScope {
  readonly account: AccountId;
  readonly pkpId: PkpId;
}

export function encrypt(key: Buffer, scope: EncryptionScope, message: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(authenticatedData(scope));
  const body = Buffer.concat([nonce, cipher.update(message, "utf8"), cipher.final(), cipher.getAuthTag()]);
  return FORMAT + body.toString("base64url");
}

/** @throws OpRefusal `decryption_failed`: not a ciphertext of this format, changed, or of another account or PKP. */
export function decrypt(key: Buffer, scope: EncryptionScope, ciphertext: string): string {
  const body = bodyOf(ciphertext);
  const decipher = createDecipheriv(CIPHER, key, body.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(authenticatedData(scope)).setAuthTag(body.subarray(-TAG_BYTES));
  const start = decipher.update(body.subarray(NONCE_BYTES, -TAG_BYTES));
  try {
    return Buffer.concat([start, decipher.final()]).toString("utf8");
  } catch {
    throw failed("it was changed, or encrypted for another account or PKP");
  }
}

function bodyOf(ciphertext: string): Buffer {
  if (!ciphertext.startsWith(FORMAT)) throw failed(`it does not start with ${FORMAT}`);
  const text = ciphertext.slice(FORMAT.length);
  const body = Buffer.from(text, "base64url");
  if (body.toString("base64url") !== text || body.length < NONCE_BYTES + TAG_BYTES)
    throw failed("it is cut short or not base64url");
  return body;
}

function authenticatedData({ account, pkpId }: EncryptionScope): Buffer {
  return Buffer.concat([
    Buffer.from(FORMAT, "ascii"),
    Buffer.from(account.slice(2), "hex"),
    Buffer.from(pkpId.slice(2), "hex"),
  ]);
}

function failed(why: string): OpRefusal {
  return new OpRefusal("decryption_failed", `the ciphertext cannot be decrypted: ${why}`);
}
