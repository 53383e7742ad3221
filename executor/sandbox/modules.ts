/**
 * Loads an action's imports before it starts. Every import of a module must name exact version and hash; others are
 * refused.
 */
import { analyse, Unparsable } from "./analyse";
import type { ImportDetail } from "./guest/actions";

export interface ImportAnswer {
  source: string;
  url: string;
  integrity: string;
}

/** An import that is refused; the run ends with `invalid_code`. */
export class ImportRefused extends Error {}

const BARE = /^(\.|\/|https?:(?!.*#sha384-)|[^#]*$)/;

export async function loadModules(
  roots: string[],
  ask: (specifier: string) => Promise<ImportAnswer>,
): Promise<{ modules: Map<string, string>; details: ImportDetail[] }> {
  const modules = new Map<string, string>();
  const details: ImportDetail[] = [];
  const open = [...roots];
  for (let specifier = open.shift(); specifier !== undefined; specifier = open.shift()) {
    if (modules.has(specifier)) continue;
    const { source, url, integrity } = await ask(specifier);
    modules.set(specifier, source);
    details.push({ specifier, url, integrity, bytes: Buffer.byteLength(source) });
    // Not `push(...all)`: a module may name more than fit on the stack.
    for (const nested of nestedImports(specifier, source)) open.push(nested);
  }
  return { modules, details };
}

function nestedImports(specifier: string, source: string): string[] {
  const imports = parseModule(specifier, source);
  const bare = imports.find((nested) => BARE.test(nested));
  if (bare)
    throw new ImportRefused(`the module ${specifier} imports ${bare} without a hash; a module must be self-contained`);
  return imports;
}

function parseModule(specifier: string, source: string): string[] {
  try {
    return analyse(source).imports;
  } catch (error) {
    if (error instanceof Unparsable)
      throw new ImportRefused(`the module ${specifier} does not parse: ${error.message}`);
    throw error;
  }
}
