/**
 * `crypto`: randomness from the host, and the subset of Web Crypto that actions need, by audited pure JavaScript
 * libraries.
 */
import type { Host } from "../../bridge";
import type { Encoding } from "../encoding";
import { createSubtle } from "./subtle";

const MAX_RANDOM_BYTES = 65_536;

export function createCrypto(random: Host["random"], encoding: Encoding): object {
  const bytes = (count: number): Uint8Array => new Uint8Array(random(count));

  function getRandomValues<T extends ArrayBufferView>(view: T): T {
    if (
      !ArrayBuffer.isView(view) ||
      view instanceof DataView ||
      view instanceof Float32Array ||
      view instanceof Float64Array
    ) {
      throw new TypeError("crypto.getRandomValues takes an integer typed array");
    }
    if (view.byteLength > MAX_RANDOM_BYTES)
      throw new RangeError(`crypto.getRandomValues gives at most ${MAX_RANDOM_BYTES} bytes at once`);
    new Uint8Array(view.buffer, view.byteOffset, view.byteLength).set(bytes(view.byteLength));
    return view;
  }

  function randomUUID(): string {
    const id = bytes(16);
    const [version = 0, variant = 0] = [id[6], id[8]];
    id[6] = (version & 0x0f) | 0x40;
    id[8] = (variant & 0x3f) | 0x80;
    const hex = Array.from(id, (byte) => byte.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  }

  return Object.freeze({ getRandomValues, randomUUID, subtle: Object.freeze(createSubtle(bytes, encoding)) });
}
