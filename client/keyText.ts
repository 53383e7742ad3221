/** Apart from the other fields, which know the contract: a client of API mode needs no more than this. */
import type { ApiKey } from "../protocol/ids";

const KEY_TEXT = /^[A-Za-z0-9+/]{43}=$/;

/** The form of a key: 44 characters of standard base64. Only the service and the contract know whether it is live. */
export function isKeyText(value: string): value is ApiKey {
  return KEY_TEXT.test(value);
}
