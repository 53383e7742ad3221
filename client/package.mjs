// `npm run sdk`: the SDK as a package of its own in dist/sdk, to be installed by path, packed or published: bundles
// with their types and source maps, and the program `keywright`.
import { build } from "esbuild";
import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { noBytecode } from "./build.mjs";
import { writeDeclarations } from "./declarations.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const target = join(root, "dist", "sdk");
const bundles = join(root, "dist", "client", "browser");

/** Entries for browsers, too; client/build.mjs makes each as one file, for those that load it by its address. */
const FOR_BROWSERS = { keywright: "index", cid: "cid" };
/** What most programs use only one of: apart, so that a bundler leaves the other one out. */
const PARTS = { api: "api", owner: "owner" };
/** Entries for Node; shared code is in chunks beside them. */
const FOR_NODE = {
  verify: "verify/index",
  action: "action",
  config: "config",
  policies: "policies",
  testing: "testing",
};
/** Entries that use the program's own ethers or viem. */
const OVER_PEERS = { ethers: "ethers", viem: "viem", provider: "provider/index" };
const PEERS = ["ethers", "viem", "viem/*"];
/** What their users install; the lowest version that the tests install, and something that older ones lack. */
const VIEM = { install: "viem@2", lowest: "viem 2.25", probe: 'require("viem/utils").hashAuthorization' };
const NEEDED = {
  ethers: { install: "ethers@6", lowest: "ethers 6.8", probe: 'require("ethers").copyRequest' },
  viem: VIEM,
  provider: VIEM,
};

const options = {
  absWorkingDir: root,
  bundle: true,
  target: "es2022",
  sourcemap: true,
  // A source map tells the place in the sources, which are not part of the package.
  sourcesContent: false,
  logLevel: "warning",
  minify: true,
  plugins: [noBytecode],
};
const named = (entries) =>
  Object.fromEntries(Object.entries(entries).map(([name, source]) => [name, `client/${source}.ts`]));

/** The entries for bundlers and Node alike: what several use is in chunks. */
async function bundleForImport() {
  const parts = Object.fromEntries(Object.entries(PARTS).map(([name, source]) => [`parts/${name}`, source]));
  const output = {
    ...options,
    outdir: join(target, "esm"),
    outExtension: { ".js": ".mjs" },
    chunkNames: "chunks/[hash]",
  };
  const shared = { ...output, splitting: true, platform: "browser", format: "esm" };
  await build({ ...shared, entryPoints: named({ ...FOR_BROWSERS, ...parts }) });
  await build({ ...shared, entryPoints: named(OVER_PEERS), external: PEERS });
}

/** Node's entries as ES modules, and the program beside them: shared code is in chunks. */
async function bundleForNode() {
  // Bundled CommonJS libraries `require` Node's built-in modules.
  const banner = {
    js: [
      'import{createRequire as keywrightRequire}from"node:module";',
      'import{dirname as keywrightFolder}from"node:path";',
      'import{fileURLToPath as keywrightPath}from"node:url";',
      "const require=keywrightRequire(import.meta.url),",
      "__filename=keywrightPath(import.meta.url),__dirname=keywrightFolder(__filename);",
    ].join(""),
  };
  const entryPoints = { ...named(FOR_NODE), "cli/main": "client/cli/main.ts" };
  const outputs = { outdir: target, outExtension: { ".js": ".mjs" }, splitting: true, chunkNames: "chunks/[hash]" };
  await build({ ...options, ...outputs, entryPoints, platform: "node", format: "esm", banner });
  const bin = join(target, "cli", "keywright.mjs");
  writeFileSync(bin, '#!/usr/bin/env node\nimport "./main.mjs";\n');
  chmodSync(bin, 0o755);
}

/** All entries for programs that still `require`; bundlers for browsers use the ES modules. */
async function bundleForRequire() {
  // Source maps of the ES modules are enough: these are the same sources once more.
  const output = { ...options, sourcemap: false, outdir: join(target, "cjs"), platform: "node", format: "cjs" };
  await build({ ...output, entryPoints: named({ ...FOR_BROWSERS, ...FOR_NODE }) });
  await build({ ...output, entryPoints: named(OVER_PEERS), external: PEERS });
  writeFileSync(join(target, "cjs", "package.json"), '{ "type": "commonjs" }\n');
}

/**
 * The executor's sandbox for `keywright dev` and `keywright test`: each process as one file, at the paths where they
 * expect each other.
 */
async function bundleSandbox() {
  const folder = join(target, "sandbox");
  const { minify: _, ...readable } = options;
  const shared = {
    ...readable,
    platform: "node",
    format: "cjs",
    sourcemap: false,
    external: ["isolated-vm"],
    minifyWhitespace: true,
  };
  // Two libraries load their native parts relative to themselves.
  const located = {
    define: { "import.meta.url": "keywrightUrl" },
    banner: { js: 'const keywrightUrl=require("node:url").pathToFileURL(__filename).href;' },
  };
  await build({
    ...shared,
    ...located,
    entryPoints: ["scripts/action/localRun.ts"],
    outfile: join(folder, "localRun.js"),
  });
  cpSync(join(root, "node_modules", "secp256k1", "prebuilds"), join(folder, "prebuilds"), { recursive: true });
  copyFileSync(join(root, "node_modules", "tiny-secp256k1", "lib", "secp256k1.wasm"), join(folder, "secp256k1.wasm"));
  const programs = {
    "fetcher/main": "executor/fetcher/main.ts",
    "confinement/starterProcess": "executor/confinement/starterProcess.ts",
  };
  await build({ ...shared, entryPoints: programs, outdir: folder });
  cpSync(join(root, "dist", "executor", "sandbox", "child.js"), join(folder, "sandbox", "child.js"));
  cpSync(join(root, "dist", "executor", "sandbox", "guest"), join(folder, "sandbox", "guest"), { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "type": "commonjs" }\n');
}

/**
 * In Node an entry over a peer is loaded by a module that says what to install when the peer is missing or too old:
 * Node's own error names neither version nor command.
 */
async function writePeerChecks() {
  mkdirSync(join(target, "peers"));
  mkdirSync(join(target, "cjs", "peers"));
  for (const [name, source] of Object.entries(OVER_PEERS)) {
    const entryPoints = [`client/${source}.ts`];
    const output = { format: "esm", write: false, metafile: true, external: ["*"], outdir: "." };
    const { metafile } = await build({ absWorkingDir: root, entryPoints, bundle: true, ...output });
    const names = Object.values(metafile.outputs).flatMap((one) => one.exports);
    const { install, lowest, probe } = NEEDED[name];
    const message = `keywright/${name} needs ${lowest} or newer: npm install ${install}`;
    const failed = `(cause)=>{throw new Error("${message}",{cause})}`;
    const loaded = `export const{${names.join()}}=await import("../esm/${name}.mjs").catch(${failed});\n`;
    writeFileSync(join(target, "peers", `${name}.mjs`), loaded);
    const required = `try{${probe}.name;module.exports=require("../${name}.js")}catch(cause){(${failed})(cause)}\n`;
    writeFileSync(join(target, "cjs", "peers", `${name}.js`), required);
  }
}

const pathOf = (name) => `./${name in FOR_NODE ? "" : "esm/"}${name}.mjs`;
const { version, license } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const entry = (name) => ({
  import: {
    types: `./types/${name}.d.ts`,
    ...(name in OVER_PEERS ? { node: `./peers/${name}.mjs` } : {}),
    default: pathOf(name),
  },
  require: {
    types: `./cjs/types/${name}.d.ts`,
    ...(name in OVER_PEERS ? { node: `./cjs/peers/${name}.js` } : {}),
    default: `./cjs/${name}.js`,
  },
});
const entries = { ...FOR_BROWSERS, ...OVER_PEERS, ...FOR_NODE };
const names = Object.keys(entries);
const description = {
  name: "keywright",
  version,
  description: "Client, command line and verifier of a Keywright service: API mode, ChainSecured wallets and multisigs",
  license,
  keywords: ["keywright", "pkp", "tee", "signing", "ethereum"],
  type: "module",
  sideEffects: false,
  bin: { keywright: "./cli/keywright.mjs" },
  exports: {
    ...Object.fromEntries(names.map((name) => [name === "keywright" ? "." : `./${name}`, entry(name)])),
    "./package.json": "./package.json",
  },
  // For resolvers that do not know `exports`.
  main: "./cjs/keywright.js",
  types: "./cjs/types/keywright.d.ts",
  typesVersions: { "*": Object.fromEntries(names.map((name) => [name, [`./cjs/types/${name}.d.ts`]])) },
  engines: { node: ">=20.19.0" },
  // The bundles have no dependencies. These only let a package manager share the program's own copies, so that older
  // versions, which a program may have for other purposes, are no conflict; an entry that needs a newer one says so.
  peerDependencies: { ethers: ">=5", viem: ">=1", "isolated-vm": ">=5" },
  peerDependenciesMeta: { ethers: { optional: true }, viem: { optional: true }, "isolated-vm": { optional: true } },
};

rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
for (const name of Object.keys(FOR_BROWSERS))
  for (const end of ["mjs", "mjs.map"]) copyFileSync(join(bundles, `${name}.${end}`), join(target, `${name}.${end}`));
copyFileSync(join(root, "LICENSE"), join(target, "LICENSE"));
copyFileSync(join(root, "client", "README.md"), join(target, "README.md"));
writeFileSync(join(target, "package.json"), `${JSON.stringify(description, null, 2)}\n`);
await Promise.all([
  writeDeclarations(root, entries, join(target, "types")),
  bundleForImport(),
  bundleForNode(),
  bundleForRequire(),
  bundleSandbox(),
]);
cpSync(join(target, "types"), join(target, "cjs", "types"), { recursive: true });
await writePeerChecks();
