/** Light, dark, or the system's setting. The choice is stored in this browser. */
export type Theme = "system" | "light" | "dark";
const STORAGE_KEY = "theme";

export function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem(STORAGE_KEY);
    return stored === "light" || stored === "dark" ? stored : "system";
  } catch {
    return "system";
  }
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
  try {
    localStorage.setItem(STORAGE_KEY, theme);
  } catch {
    // Then the choice lasts until the page is closed.
  }
}
