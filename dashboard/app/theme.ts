/** Light, dark, or the system's setting. The choice is stored in this browser. */
import { store, stored } from "../session/stored";

export type Theme = "system" | "light" | "dark";
const STORAGE_KEY = "theme";

export function storedTheme(): Theme {
  const theme = stored("localStorage", STORAGE_KEY);
  return theme === "light" || theme === "dark" ? theme : "system";
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
  store("localStorage", STORAGE_KEY, theme);
}
