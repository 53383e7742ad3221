/**
 * Bundles an action in TypeScript and its imports into one JavaScript file. Reproducible: the same sources give the
 * same bytes, and so the same CID, on every machine (no paths, comments or random names). Modules imported by URL are
 * fetched once; their hashes are locked and checked from then on.
 */
import type * as Cid from "../../protocol/cid";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import type { BuildOptions, Plugin } from "esbuild";
import { WrongUse } from "../errors";
import { actionFile, type Project } from "./project";
import { defined } from "../../protocol/defined";

export interface Built {
  readonly action: string;
  /** Relative to the project's folder. */
  readonly file: string;
  readonly code: string;
  readonly cid: string;
  readonly bytes: number;
}

export const LOCK_FILE = "keywright.lock.json";
const GLOBAL_NAME = "keywrightAction";

export async function buildAll(project: Project): Promise<Built[]> {
  const lock = readLock(project);
  const built: Built[] = [];
  for (const action of Object.keys(project.config.actions)) built.push(await buildAction(project, action, lock));
  const out = join(project.folder, project.config.outDir);
  mkdirSync(out, { recursive: true });
  for (const { action, code } of built) writeFileSync(join(out, `${action}.js`), code);
  writeLock(project, lock);
  return built;
}

export async function buildAction(project: Project, action: string, lock: Lock): Promise<Built> {
  const { outputFiles = [] } = await project.esbuild.build(options(project, action, lock)).catch((error: unknown) => {
    throw new WrongUse(`${action} cannot be built: ${error instanceof Error ? error.message : String(error)}`);
  });
  const code = outputFiles[0]?.text ?? "";
  const file = [project.config.outDir, `${action}.js`].join("/");
  const { cidOfCode } = require("../../protocol/cid") as typeof Cid;
  return { action, file, code, cid: await cidOfCode(code), bytes: Buffer.byteLength(code) };
}

/** Options for one action; `write: false`, the caller decides. */
export function options(project: Project, action: string, lock: Lock): BuildOptions & { write: false } {
  const path = relative(project.folder, actionFile(project, action)).split(sep).join("/");
  return {
    absWorkingDir: project.folder,
    stdin: {
      contents:
        `import * as action from ${JSON.stringify(`./${path}`)};\n` +
        `export const run = action["default"] ?? action["main"];\n`,
      resolveDir: project.folder,
      sourcefile: "entry.js",
    },
    bundle: true,
    format: "iife",
    globalName: GLOBAL_NAME,
    // The sandbox calls `main`.
    footer: { js: `async function main(params){return ${GLOBAL_NAME}.run(params)}` },
    platform: "browser",
    target: "es2022",
    charset: "utf8",
    // Removes comments, which contain paths; names stay readable.
    minifyWhitespace: true,
    legalComments: "none",
    sourcemap: false,
    treeShaking: true,
    define: { "process.env.NODE_ENV": '"production"' },
    plugins: [ethersOfTheSandbox, pinnedModules(project, lock)],
    write: false,
    logLevel: "silent",
    logOverride: { "import-is-undefined": "silent" },
  };
}

/** Maps imports of ethers to the sandbox's global (version 6), so that they add no bytes. */
const ethersOfTheSandbox: Plugin = {
  name: "ethers-of-the-sandbox",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^ethers$/ }, () => ({ path: "ethers", namespace: "global" }));
    onLoad({ filter: /.*/, namespace: "global" }, () => ({
      contents: "module.exports = Object.create(ethers, { ethers: { value: ethers, enumerable: true } });",
      loader: "js",
    }));
  },
};

export interface Lock {
  /** The bundler's version: another one may give different bytes. */
  esbuild: string;
  /** SHA-384 in base64 by address, imports of imports included. */
  readonly modules: Record<string, string>;
}

export function readLock(project: Project): Lock {
  const file = join(project.folder, LOCK_FILE);
  const fresh: Lock = { esbuild: project.esbuild.version, modules: {} };
  if (!existsSync(file)) return fresh;
  const { modules } = JSON.parse(readFileSync(file, "utf8")) as Lock;
  return { ...fresh, modules: { ...modules } };
}

export function writeLock({ folder }: Project, lock: Lock): void {
  const modules = Object.fromEntries(Object.entries(lock.modules).sort(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(join(folder, LOCK_FILE), `${JSON.stringify({ esbuild: lock.esbuild, modules }, null, 2)}\n`);
}

const PINNED =
  /^((?:@[a-z0-9-~][a-z0-9-._~]*\/)?[a-z0-9-~][a-z0-9-._~]*@\d+\.\d+\.\d+[^#]*)(?:#(sha384-[A-Za-z0-9+/]{64}))?$/;
const MAX_MODULE_BYTES = 5 * 2 ** 20;

/**
 * `name@1.2.3[/path][#sha384-…]`, run-time import specifiers, bundled instead, with the imports of such modules from
 * the same origin.
 */
function pinnedModules({ config }: Project, lock: Lock): Plugin {
  const origin = config.moduleOrigin.endsWith("/") ? config.moduleOrigin : `${config.moduleOrigin}/`;
  return {
    name: "pinned-modules",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: PINNED }, ({ path }) => {
        const [, named = "", integrity] = PINNED.exec(path) ?? [];
        const whole = /@\d+\.\d+\.\d+[^/]*$/.test(named) ? `${named}/+esm` : named;
        return { path: new URL(whole, origin).href, namespace: "pinned", ...defined({ pluginData: integrity }) };
      });
      onResolve({ filter: /.*/, namespace: "pinned" }, ({ path, importer }) => {
        const url = new URL(path, importer);
        if (url.origin !== new URL(origin).origin)
          return { errors: [{ text: `${importer} imports ${path}, which is not below ${origin}` }] };
        return { path: url.href, namespace: "pinned" };
      });
      onLoad({ filter: /.*/, namespace: "pinned" }, async ({ path, pluginData }) => ({
        contents: await fetchPinned(path, pluginData as string | undefined, lock),
        loader: "js",
      }));
    },
  };
}

async function fetchPinned(url: string, integrity: string | undefined, lock: Lock): Promise<string> {
  const response = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(30_000) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  const bytes = Buffer.from(await response.arrayBuffer());
  if (bytes.length > MAX_MODULE_BYTES) throw new Error(`${url} is larger than ${MAX_MODULE_BYTES} bytes`);
  const actual = `sha384-${createHash("sha384").update(bytes).digest("base64")}`;
  for (const expected of [integrity, lock.modules[url]])
    if (expected !== undefined && expected !== actual)
      throw new Error(`${url} has the hash ${actual}, not ${expected}: the module has changed`);
  lock.modules[url] = actual;
  return bytes.toString("utf8");
}
