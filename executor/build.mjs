// Builds what file-by-file compilation cannot: child and fetcher as one file each (they start in half the time), and
// the scripts that run inside isolates.
import { build } from "esbuild";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Comments in a bundle name its sources: relative to the root, so that they do not depend on the repository's location.
 */
const ROOT = fileURLToPath(new URL("..", import.meta.url));

/**
 * Scripts of the guest. Each is one expression statement, so that nothing of the bundler enters the guest's global
 * scope.
 */
const GUEST = {
  target: "es2022",
  format: "iife",
  bundle: true,
  platform: "browser",
  minify: true,
  legalComments: "none",
  logLevel: "warning",
};

export default async function buildExecutor({ root, outdir }) {
  const sandbox = join(root, "executor", "sandbox");
  const out = join(outdir, "sandbox");
  await Promise.all([
    program(join(sandbox, "child.ts"), join(out, "child.js")),
    program(join(root, "executor", "fetcher", "main.ts"), join(outdir, "fetcher", "main.js")),
    builtInPlace({
      ...GUEST,
      entryPoints: [join(sandbox, "guest", "prelude.ts")],
      outfile: join(out, "guest", "prelude.js"),
      globalName: "prelude",
      banner: { js: "(function(){'use strict';" },
      footer: { js: "return prelude.install})()" },
      plugins: [preludeGlobals, oneFunctionEach],
    }),
    library(root, "ethers", "ethers6", out),
    library(root, "ethers5", "ethers5", out),
  ]);
}

/**
 * Adapts libraries to the prelude: blobs must find the global `ReadableStream` instead of Node's; the event library
 * must not look for a global `EventTarget`, because it implements that one; copies must be like the web's, where
 * `__proto__` is a member like others, a date may be invalid, and a view begins where it did.
 */
const preludeGlobals = {
  name: "prelude-globals",
  setup({ onLoad }) {
    onLoad({ filter: /fetch-blob[\\/]streams\.cjs$/ }, () => ({ contents: "", loader: "js" }));
    onLoad({ filter: /event-target-shim[\\/]index\.mjs$/ }, ({ path }) =>
      adapted(path, [/const Global = typeof window[^;]*;/, "const Global = undefined;"]),
    );
    onLoad({ filter: /structured-clone[\\/]esm[\\/]deserialize\.js$/ }, ({ path }) => {
      const member = "{ value: unpair(index), writable: true, enumerable: true, configurable: true }";
      return adapted(path, [
        "object[unpair(key)] = unpair(index);",
        `Object.defineProperty(object, unpair(key), ${member});`,
      ]);
    });
    onLoad({ filter: /structured-clone[\\/]esm[\\/]serialize\.js$/ }, ({ path }) =>
      adapted(
        path,
        ["value.toISOString()", "value.getTime()"],
        ["new Uint8Array(value.buffer)", "new Uint8Array(value.buffer, value.byteOffset, value.byteLength)"],
      ),
    );
  },
};

function adapted(path, ...replacements) {
  let contents = readFileSync(path, "utf8");
  for (const [from, to] of replacements) {
    const source = contents;
    contents = source.replace(from, to);
    if (contents === source) throw new Error(`${path} is written in another way than before: it lacks ${from}`);
  }
  return { contents, loader: "js" };
}

/** Web modules that are large, or that few actions use. */
const RARE_MODULE = /guest[\\/]web[\\/](clone|crypto[\\/]crypto|files|inspect|streams)\.ts$/;

/**
 * Bundles each of them, with its libraries, as one function that runs when it is required: the functions of its parts
 * would otherwise be read from V8's cache and made at the start of every isolate. At its first use the module is read
 * twice, which is why modules that many actions use are not among them.
 */
const oneFunctionEach = {
  name: "one-function-each",
  setup({ onLoad }) {
    onLoad({ filter: RARE_MODULE }, async ({ path }) => {
      const { outputFiles } = await build({
        ...GUEST,
        absWorkingDir: ROOT,
        entryPoints: [path],
        format: "cjs",
        write: false,
        plugins: [preludeGlobals],
      });
      return { contents: outputFiles[0].text, loader: "js" };
    });
  },
};

/** A process that switches its user: one file, so that all code is read before the switch. */
function program(from, to) {
  const options = {
    bundle: true,
    platform: "node",
    target: "node24",
    format: "cjs",
    external: ["isolated-vm"],
    sourcemap: "linked",
    logLevel: "warning",
  };
  return builtInPlace({ ...options, entryPoints: [from], outfile: to });
}

/** Replaces a file atomically and only if it differs: a running service may be starting a child from it. */
export async function builtInPlace(options) {
  const { outputFiles } = await build({ ...options, absWorkingDir: ROOT, write: false });
  for (const { path, contents } of outputFiles) {
    if (existsSync(path) && readFileSync(path).equals(contents)) continue;
    mkdirSync(dirname(path), { recursive: true });
    const temporary = `${path}.${process.pid}`;
    writeFileSync(temporary, contents);
    renameSync(temporary, path);
  }
}

/** A library as a script that evaluates to the library; the host defines it as a global. */
function library(root, from, name, out) {
  return builtInPlace({
    ...GUEST,
    stdin: { contents: `export { ethers } from ${JSON.stringify(from)};`, resolveDir: root },
    outfile: join(out, "guest", `${name}.js`),
    mainFields: ["browser", "module", "main"],
    globalName: "library",
    banner: { js: "(function(){" },
    footer: { js: "return library.ethers})()" },
  });
}
