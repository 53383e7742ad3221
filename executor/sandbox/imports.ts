/** Resolves an import specifier to its one URL, and returns a module only if its bytes have the named hash. */
import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Fetcher } from "../fetcher/types";
import { inTurn } from "../loop";

export interface ImportedModule {
  source: Buffer;
  url: string;
  integrity: string;
}

/** An invalid specifier or module: an error of the action's author. */
export class BadImport extends Error {}

const NAME = "[a-z0-9-~][a-z0-9-._~]*";
const VERSION = "\\d+\\.\\d+\\.\\d+(?:-[0-9A-Za-z.-]+)?";
const PACKAGE = new RegExp(`^((?:@${NAME}/)?${NAME})@(${VERSION})(/[A-Za-z0-9._~@+/-]*)?$`);
const INTEGRITY = /^sha384-[A-Za-z0-9+/]{64}$/;
const FORM = 'write it as "name@1.2.3#sha384-…" with an exact version and the base64 SHA-384 of the module';

/** `name@x.y.z[/path]#sha384-…`, or the same as a full URL below the module origin. */
export function resolveImport(specifier: string, moduleOrigin: string): { url: string; integrity: string } {
  const [name = "", integrity = ""] = splitOnce(specifier, "#");
  if (!integrity) throw new BadImport(`the import ${specifier} has no hash; ${FORM}`);
  if (!INTEGRITY.test(integrity)) throw new BadImport(`the import ${specifier} has no sha384 hash; ${FORM}`);
  const base = new URL(moduleOrigin.endsWith("/") ? moduleOrigin : `${moduleOrigin}/`);
  const path = name.startsWith(base.href) ? name.slice(base.href.length) : name;
  const parts = PACKAGE.exec(path);
  if (!parts) throw new BadImport(`the import ${specifier} names no package with an exact version; ${FORM}`);
  const url = new URL(`${parts[1]}@${parts[2]}${parts[3] ?? "/+esm"}`, base);
  // Normalisation removes dot segments: the URL must still be below the origin, at this version.
  if (!url.href.startsWith(`${base.href}${parts[1]}@${parts[2]}/`))
    throw new BadImport(`the import ${specifier} leaves its package`);
  return { url: url.href, integrity };
}

function splitOnce(text: string, separator: string): string[] {
  const at = text.indexOf(separator);
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + separator.length)];
}

/** Who imports a module. */
export interface ModuleUser {
  readonly account: string;
  readonly maxBytes: number;
  /** Aborted when it needs the module no more, or others need its memory. */
  readonly over: AbortSignal;
  /** Fetches one that is not cached, when the account may, and no longer than it may. It has memory from then on. */
  readonly fetching: (fetch: (over: AbortSignal) => Promise<Buffer>) => Promise<Buffer>;
  /** Resolves when there is memory for one that is cached: the cache may drop it before its user does. */
  readonly holding: (bytes: number) => Promise<unknown>;
}

/**
 * Modules by hash: a verified module is never fetched again while it is cached. Until then each user fetches it itself,
 * in its own share: one whose fetch is ended takes it from nobody else.
 */
export class ModuleCache {
  readonly #modules: LRUCache<string, Buffer>;
  readonly #fetcher: Fetcher;
  readonly #moduleOrigin: string;

  constructor(fetcher: Fetcher, moduleOrigin: string, maxBytes = 64 * 2 ** 20) {
    this.#fetcher = fetcher;
    this.#moduleOrigin = moduleOrigin;
    // The LRU cache requires a size above zero, also for an empty module.
    this.#modules = new LRUCache({ maxSize: maxBytes, sizeCalculation: (source) => source.length + 1 });
  }

  async get(specifier: string, { account, maxBytes, over, fetching, holding }: ModuleUser): Promise<ImportedModule> {
    const { url, integrity } = resolveImport(specifier, this.#moduleOrigin);
    const bytes = this.#modules.get(integrity)?.length;
    if (bytes !== undefined) await holding(bytes);
    // Looked up again, because what waits for memory holds none, and the cache may have dropped it meanwhile.
    const known = this.#modules.get(integrity);
    if (known) return { source: known, url, integrity };
    const source = await fetching((signal) => this.#fetcher.fetchModule(url, maxBytes, { signal }));
    const actual = await inTurn(account, () => `sha384-${hash("sha384", source, "base64")}`, over);
    if (actual !== integrity) throw new BadImport(`the module at ${url} has the hash ${actual}, not ${integrity}`);
    this.#modules.set(integrity, source);
    return { source, url, integrity };
  }
}
