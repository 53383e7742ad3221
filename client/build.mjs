// Bundles the SDK for browsers: one ES module with everything it needs, a second one for the CID of code, and one each
// for programs that bring ethers or viem.
import { build } from "esbuild";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The contract's code is for deploying it: bundles leave it out. */
export const FACTORY = /AccountManager__factory\.ts$/;
export const withoutBytecode = (source) => source.replace(/"0x[0-9a-f]{1000,}"/, '"0x"');
const noBytecode = {
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
  await Promise.all([
    build({ ...options, ...output, entryPoints: { keywright: "client/index.ts", cid: "client/cid.ts" } }),
    build({
      ...options,
      ...output,
      entryPoints: { ethers: "client/ethers.ts", viem: "client/viem.ts" },
      external: PEERS,
      plugins: [noBytecode, sharedErrors("./keywright.mjs")],
    }),
  ]);
}

/** Peer dependencies of these entries: not bundled. */
export const PEERS = ["ethers", "viem", "viem/*"];

/** Every entry uses the main entry's error class, so that `instanceof` works across entries. */
export function sharedErrors(path) {
  return {
    name: "shared-errors",
    setup: ({ onResolve }) =>
      void onResolve({ filter: /(^|\/)errors$/ }, ({ importer }) =>
        /[\\/]client[\\/]/.test(importer) ? { path, external: true } : undefined,
      ),
  };
}
