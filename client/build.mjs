// Bundles the SDK for browsers: one ES module with everything it needs, and a second one for the CID of code.
import { build } from "esbuild";
import { join } from "node:path";

export default async function bundleForBrowsers({ root, outdir }) {
  await build({
    absWorkingDir: root,
    entryPoints: { keywright: "client/index.ts", cid: "client/cid.ts" },
    outdir: join(outdir, "browser"),
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "browser",
    target: "es2022",
    format: "esm",
    minify: true,
    sourcemap: "linked",
    logLevel: "warning",
  });
}
