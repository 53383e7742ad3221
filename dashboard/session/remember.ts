/**
 * "Remember in this tab": the key in sessionStorage, which ends with the tab. Off unless ticked; nothing else is ever
 * stored.
 */
const PLACE = "key";

export function rememberedKey(): string | undefined {
  try {
    return sessionStorage.getItem(PLACE) ?? undefined;
  } catch {
    return undefined;
  }
}

export function rememberKey(key: string): void {
  try {
    sessionStorage.setItem(PLACE, key);
  } catch {
    // Storage may be disabled; then nothing is remembered.
  }
}

export function forgetKey(): void {
  try {
    sessionStorage.removeItem(PLACE);
  } catch {
    // Nothing was stored.
  }
}
