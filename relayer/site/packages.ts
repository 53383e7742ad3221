/** Serves the package that the build made: what users install is part of what is attested. */
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

export interface Packages {
  /** The content of `keywright-<version>.tgz`; undefined for any other name. */
  file(name: string): Buffer | undefined;
}

export function openPackages(folder: string): Packages {
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".tgz")) : [];
  const files = new Map(names.map((name) => [name, readFileSync(join(folder, name))]));
  return { file: (name) => files.get(name) };
}
