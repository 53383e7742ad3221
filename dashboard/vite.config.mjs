// How Vite bundles the dashboard. Called by build.mjs; no configuration file is looked up.
import react from "@vitejs/plugin-react";
import { join } from "node:path";
import { FACTORY, withoutBytecode } from "../client/build.mjs";

/** Placeholder that the server replaces with a nonce in every page it serves. */
export const NONCE_PLACEHOLDER = "__NONCE__";

/** The verifier is written for Node: only the Node modules it uses are replaced. */
function verifierInBrowser(root) {
  const replaced = new Map(
    ["quote", "signature", "http"].map((name) => [
      `./${name}`,
      join(root, "dashboard/screens/trust/browser", `${name}.ts`),
    ]),
  );
  const crypto = join(root, "dashboard/screens/trust/browser/nodeCrypto.ts");
  const verifier = join(root, "client", "verify");
  return {
    name: "verifier-in-browser",
    enforce: "pre",
    resolveId(source, importer) {
      if (source === "node:crypto") return crypto;
      return importer?.startsWith(verifier) ? replaced.get(source) : undefined;
    },
  };
}

const noBytecode = {
  name: "no-bytecode",
  transform: (source, id) => (FACTORY.test(id) ? withoutBytecode(source) : undefined),
};

/** Code that the first screen does not need is a separate chunk, loaded when its screen is opened. */
export default function configuration({ root, outdir }) {
  return {
    configFile: false,
    root: join(root, "dashboard"),
    cacheDir: join(root, "cache", "vite"),
    logLevel: "warn",
    publicDir: false,
    plugins: [react(), verifierInBrowser(root), noBytecode],
    html: { cspNonce: NONCE_PLACEHOLDER },
    build: {
      outDir: outdir,
      emptyOutDir: false,
      target: ["chrome123", "firefox128", "safari17.5"],
      // The project's modules have no side effects on load: unused exports are dropped.
      rolldownOptions: {
        treeshake: { moduleSideEffects: (id) => !/[\\/](client|protocol|typechain-types)[\\/][^\0]*\.ts$/.test(id) },
      },
      modulePreload: { polyfill: false },
      // Inlined data URLs would need a laxer CSP without benefit.
      assetsInlineLimit: 0,
      reportCompressedSize: false,
      chunkSizeWarningLimit: 1000,
    },
  };
}
