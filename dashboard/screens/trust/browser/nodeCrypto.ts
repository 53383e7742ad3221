/** The part of Node's crypto module that the verifier uses, for browsers. */
import { sha256, sha384, sha512 } from "@noble/hashes/sha2";
import { Buffer } from "buffer";

const ALGORITHMS = { sha256, sha384, sha512 };

class Hash {
  readonly #hash;
  constructor(algorithm: keyof typeof ALGORITHMS) {
    this.#hash = ALGORITHMS[algorithm].create();
  }
  update(part: Uint8Array | string): this {
    this.#hash.update(typeof part === "string" ? new TextEncoder().encode(part) : Uint8Array.from(part));
    return this;
  }
  digest(): Buffer;
  digest(encoding: "hex"): string;
  digest(encoding?: "hex"): Buffer | string {
    const bytes = Buffer.from(this.#hash.digest());
    return encoding === undefined ? bytes : bytes.toString(encoding);
  }
}

export const createHash = (algorithm: keyof typeof ALGORITHMS): Hash => new Hash(algorithm);

const DER_SEQUENCE = 0x30;

/** The verifier uses only a certificate's raw bytes. */
export class X509Certificate {
  constructor(readonly raw: Buffer) {
    if (raw[0] !== DER_SEQUENCE) throw new Error("no DER sequence");
  }
}
