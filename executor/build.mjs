// What a file-by-file translation does not give: the child as one file (it starts in half the time), and the scripts that run inside isolates.
import { build } from "esbuild";
import { join } from "node:path";

/** Scripts of the guest. Each is one expression statement, so that nothing of a bundler lands in the guest's global scope. */
const GUEST = { target: "es2022", format: "iife", bundle: true, platform: "browser", minify: true, legalComments: "none", logLevel: "warning" };

export default async function buildExecutor({ root, outdir }) {
  const sandbox = join(root, "executor", "sandbox");
  const out = join(outdir, "sandbox");
  await Promise.all([
    build({
      entryPoints: [join(sandbox, "child.ts")],
      outfile: join(out, "child.js"),
      bundle: true,
      platform: "node",
      target: "node20",
      format: "cjs",
      external: ["isolated-vm"],
      sourcemap: "linked",
      logLevel: "warning",
    }),
    build({
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

/** A library as a script whose value is the library; the host defines it as a global. */
function library(root, from, name, out) {
  return build({
    ...GUEST,
    stdin: { contents: `export { ethers } from ${JSON.stringify(from)};`, resolveDir: root },
    outfile: join(out, "guest", `${name}.js`),
    mainFields: ["browser", "module", "main"],
    globalName: "library",
    banner: { js: "(function(){" },
    footer: { js: "return library.ethers})()" },
  });
}
