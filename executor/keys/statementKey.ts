/**
 * The keyholder's Ed25519 key for its own statements: public keys, receipts, messages to webhooks. What is signed
 * begins differently for each kind, so that none can be read as another (docs/adr/0414-signed-webhooks.md). OpenSSL
 * keeps the key for the life of the process, as the keyring keeps the root key: importing it for each signature would
 * take ten times as long.
 */
import { createPrivateKey, sign, type KeyObject } from "node:crypto";
import { ed25519PublicKey, withPkcs8 } from "./ed25519";
import type { Keyring } from "./keyring";

export class StatementKey {
  /** 0x and the 32 bytes of the public key, as in the config document, which quotes cover. */
  readonly publicKey: string;
  readonly #key: KeyObject;

  constructor(keyring: Keyring) {
    this.publicKey = `0x${keyring.withStatementKey(ed25519PublicKey).toString("hex")}`;
    this.#key = keyring.withStatementKey((seed) =>
      withPkcs8(seed, (key) => createPrivateKey({ key, format: "der", type: "pkcs8" })),
    );
  }

  /** The 64 bytes of the signature. */
  sign(message: Uint8Array): Buffer {
    return sign(null, message, this.#key);
  }
}
