// What a file-by-file translation does not give: the child and the fetcher as one file each (they start in half the time), and the scripts that run inside isolates.
import { build } from "esbuild";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Comments in a bundle name its sources: from here, so that they are the same wherever the repository lies. */
const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Scripts of the guest. Each is one expression statement, so that nothing of a bundler lands in the guest's global scope. */
const GUEST = { target: "es2022", format: "iife", bundle: true, platform: "browser", minify: true, legalComments: "none", logLevel: "warning" };

export default async function buildExecutor({ root, outdir }) {
  const sandbox = join(root, "executor", "sandbox");
  const out = join(outdir, "sandbox");
  await Promise.all([
    program(join(sandbox, "child.ts"), join(out, "child.js")),
    program(join(root, "executor", "fetcher", "main.ts"), join(outdir, "fetcher", "main.js")),
    bundle({
      ...GUEST,
      entryPoints: [join(sandbox, "guest", "prelude.ts")],
      outfile: join(out, "guest", "prelude.js"),
      globalName: "prelude",
      banner: { js: "(function(){'use strict';" },
      footer: { js: "return prelude.install})()" },
    }),
    library(root, "ethers", "ethers6", out),
    library(root, "ethers5", "ethers5", out),
  ]);
}

/** A process that changes its user: one file, so that it has read everything before it does. */
function program(from, to) {
  const options = { bundle: true, platform: "node", target: "node24", format: "cjs", external: ["isolated-vm"], sourcemap: "linked", logLevel: "warning" };
  return bundle({ ...options, entryPoints: [from], outfile: to });
}

/** Replaces a file in one step and only when it differs: a running service may be starting a child from it. */
async function bundle(options) {
  const { outputFiles } = await build({ ...options, absWorkingDir: ROOT, write: false });
  for (const { path, contents } of outputFiles) {
    if (existsSync(path) && readFileSync(path).equals(contents)) continue;
    mkdirSync(dirname(path), { recursive: true });
    const temporary = `${path}.${process.pid}`;
    writeFileSync(temporary, contents);
    renameSync(temporary, path);
  }
}

/** A library as a script whose value is the library; the host defines it as a global. */
function library(root, from, name, out) {
  return bundle({
    ...GUEST,
    stdin: { contents: `export { ethers } from ${JSON.stringify(from)};`, resolveDir: root },
    outfile: join(out, "guest", `${name}.js`),
    mainFields: ["browser", "module", "main"],
    globalName: "library",
    banner: { js: "(function(){" },
    footer: { js: "return library.ethers})()" },
  });
}
