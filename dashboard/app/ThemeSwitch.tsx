import { useState, type ReactNode } from "react";
import { applyTheme, storedTheme, type Theme } from "./theme";

const THEMES = [
  ["system", "System"],
  ["light", "Light"],
  ["dark", "Dark"],
] as const;

export function ThemeSwitch(): ReactNode {
  const [theme, setTheme] = useState<Theme>(storedTheme);
  const choose = (next: Theme): void => {
    applyTheme(next);
    setTheme(next);
  };
  return (
    <label className="theme soft small">
      Theme{" "}
      <select value={theme} onChange={(event) => choose(event.target.value as Theme)}>
        {THEMES.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}
