/**
 * "Remember in this tab": the key in sessionStorage, which ends with the tab. Off unless ticked; nothing else is ever
 * stored.
 */
const STORAGE_KEY = "key";

export function rememberedKey(): string | undefined {
  try {
    return sessionStorage.getItem(STORAGE_KEY) ?? undefined;
  } catch {
    return undefined;
  }
}

export function rememberKey(key: string): void {
  try {
    sessionStorage.setItem(STORAGE_KEY, key);
  } catch {
    // Storage may be disabled; then nothing is remembered.
  }
}

export function forgetKey(): void {
  try {
    sessionStorage.removeItem(STORAGE_KEY);
  } catch {
    // Nothing was stored.
  }
}
