/** Programs beyond npm's packages: required at the start, not after minutes of work. */
import { spawnSync } from "node:child_process";

/** Debian's package of each. */
const PACKAGES = { git: "git", tar: "tar", "dpkg-deb": "dpkg", "apt-cache": "apt" } as const;

/** @throws an error that names the missing programs and their packages */
export function requirePrograms(purpose: string, ...names: (keyof typeof PACKAGES)[]): void {
  const missing = names.filter((name) => spawnSync(name, ["--version"], { stdio: "ignore" }).error !== undefined);
  if (missing.length === 0) return;
  const packages = missing.map((name) => PACKAGES[name]).join(", ");
  throw new Error(`${purpose} needs ${missing.join(", ")} (Debian's packages: ${packages})`);
}
