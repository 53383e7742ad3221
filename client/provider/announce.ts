/** Announces a provider to the page, as EIP-6963 has it: wallet lists of applications then show it. */
import { announceProvider, type EIP6963ProviderDetail } from "mipd";
import type { KeywrightProvider } from "./eip1193";

export interface ProviderInfo {
  /** What a wallet list shows. Default: Keywright. */
  readonly name?: string;
  /** A data URI of a square picture. Default: a key. */
  readonly icon?: `data:image/${string}`;
  /** The announcing application's domain, reversed; it identifies the wallet. Default: keywright.local. */
  readonly rdns?: string;
  /** A UUIDv4 for this page. Default: a new one. */
  readonly uuid?: string;
}

export const NAME = "Keywright";
export const ICON: NonNullable<ProviderInfo["icon"]> = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 96 96"><rect width="96" height="96" rx="20" fill="#0550ae"/>' +
    '<path d="M30 48a14 14 0 1 1 27-5h19v10h-6v9h-9v-9h-4a14 14 0 0 1-27-5z" fill="#fff"/>' +
    '<circle cx="43" cy="48" r="5" fill="#0550ae"/></svg>',
)}`;

/** @returns a function that ends the announcement; outside a page nothing is announced */
export function announceKeywright(provider: KeywrightProvider, given: ProviderInfo = {}): () => void {
  if (!("window" in globalThis)) return () => undefined;
  const { name = NAME, icon = ICON, rdns = "keywright.local", uuid = newUuid() } = given;
  const info = Object.freeze({ uuid, name, icon, rdns });
  return announceProvider({ info, provider: provider as unknown as EIP6963ProviderDetail["provider"] });
}

/** Not `crypto.randomUUID`, which browsers withhold from pages served over plain http. */
function newUuid(): string {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
