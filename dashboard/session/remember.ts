/**
 * "Remember in this tab": the key in sessionStorage, which ends with the tab. Off unless ticked; nothing else is ever
 * stored.
 */
import { store, stored } from "./stored";

const STORAGE_KEY = "key";

export const rememberedKey = (): string | undefined => stored("sessionStorage", STORAGE_KEY);
export const rememberKey = (key: string): void => store("sessionStorage", STORAGE_KEY, key);
export const forgetKey = (): void => store("sessionStorage", STORAGE_KEY, undefined);
