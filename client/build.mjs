// Bundles the SDK for browsers that load it by address: one ES module with everything it needs, and a second one for
// the CID of code.
import { build } from "esbuild";
import { join } from "node:path";

const options = {
  bundle: true,
  platform: "browser",
  target: "es2022",
  format: "esm",
  minify: true,
  sourcemap: "linked",
  logLevel: "warning",
};

export default async function bundleForBrowsers({ root, outdir }) {
  const output = { absWorkingDir: root, outdir: join(outdir, "browser"), outExtension: { ".js": ".mjs" } };
  await build({ ...options, ...output, entryPoints: { keywright: "client/index.ts", cid: "client/cid.ts" } });
}
