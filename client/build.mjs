// Bundles the SDK for browsers that load it by address: one ES module with everything it needs, and a second one for
// the CID of code.
import { build } from "esbuild";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The contract's code is for deploying it: bundles leave it out. */
export const FACTORY = /AccountManager__factory\.ts$/;
export const withoutBytecode = (source) => source.replace(/"0x[0-9a-f]{1000,}"/, '"0x"');
export const noBytecode = {
  name: "no-bytecode",
  setup: ({ onLoad }) =>
    void onLoad({ filter: FACTORY }, ({ path }) => ({
      contents: withoutBytecode(readFileSync(path, "utf8")),
      loader: "ts",
    })),
};

const options = {
  bundle: true,
  platform: "browser",
  target: "es2022",
  format: "esm",
  minify: true,
  sourcemap: "linked",
  logLevel: "warning",
  plugins: [noBytecode],
};

export default async function bundleForBrowsers({ root, outdir }) {
  const output = { absWorkingDir: root, outdir: join(outdir, "browser"), outExtension: { ".js": ".mjs" } };
  await build({ ...options, ...output, entryPoints: { keywright: "client/index.ts", cid: "client/cid.ts" } });
}
