// `npm run sdk`: the SDK as a package of its own in dist/sdk, to be installed by path, packed or published: bundles
// with their types and source maps, and the program `keywright`.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { PEERS, sharedErrors } from "./build.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const target = process.argv[2] ?? join(root, "dist", "sdk");
const bundles = join(root, "dist", "client", "browser");

/** Entries that browsers may load: one file each, made by client/build.mjs. */
const FOR_BROWSERS = { keywright: "index", cid: "cid" };
/** Entries for Node; shared code is in chunks beside them. */
const FOR_NODE = {
  verify: "verify/index",
  action: "action",
  config: "config",
  policies: "policies",
  testing: "testing",
};
/** Entries that use the program's own ethers or viem. */
const OVER_PEERS = { ethers: "ethers", viem: "viem" };

const options = {
  absWorkingDir: root,
  bundle: true,
  target: "es2022",
  sourcemap: true,
  logLevel: "warning",
  minify: true,
};
const named = (entries) =>
  Object.fromEntries(Object.entries(entries).map(([name, source]) => [name, `client/${source}.ts`]));

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
  const output = { ...options, outdir: join(target, "cjs"), platform: "node", format: "cjs" };
  await build({ ...output, entryPoints: named({ ...FOR_BROWSERS, ...FOR_NODE }) });
  await build({
    ...output,
    entryPoints: named(OVER_PEERS),
    external: PEERS,
    plugins: [sharedErrors("./keywright.js")],
  });
  writeFileSync(join(target, "cjs", "package.json"), '{ "type": "commonjs" }\n');
  cpSync(join(target, "types"), join(target, "cjs", "types"), { recursive: true });
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

function writeTypes() {
  const args = [
    "--noEmit",
    "false",
    "--emitDeclarationOnly",
    "--declaration",
    "--incremental",
    "false",
    "--tsBuildInfoFile",
    "null",
    "--rootDir",
    ".",
  ];
  const config = join(root, "client", "tsconfig.json");
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const { status } = spawnSync(process.execPath, [tsc, "-p", config, ...args, "--outDir", join(target, "types")], {
    cwd: root,
    stdio: "inherit",
  });
  if (status !== 0) process.exit(status ?? 1);
  for (const file of readdirSync(join(target, "types"), { recursive: true }))
    if (file.endsWith(".d.ts")) nameFiles(join(target, "types", file));
}

/** Adds file extensions to import paths: ES modules need them, and the CommonJS sources omit them. */
function nameFiles(file) {
  const text = readFileSync(file, "utf8").replace(/(from |import\()"(\.{1,2}(?:\/[^"]*)?)"/g, (_, start, path) => {
    const whole = existsSync(join(dirname(file), `${path}.d.ts`))
      ? `${path}.js`
      : `${path.replace(/\/$/, "")}/index.js`;
    return `${start}"${whole}"`;
  });
  writeFileSync(file, text);
}

const { version, license, dependencies, devDependencies } = JSON.parse(
  readFileSync(join(root, "package.json"), "utf8"),
);
const entry = (name, source) => ({
  import: { types: `./types/client/${source}.d.ts`, default: `./${name}.mjs` },
  require: { types: `./cjs/types/client/${source}.d.ts`, default: `./cjs/${name}.js` },
});
const entries = Object.entries({ ...FOR_BROWSERS, ...OVER_PEERS, ...FOR_NODE });
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
    ...Object.fromEntries(
      entries.map(([name, source]) => [name === "keywright" ? "." : `./${name}`, entry(name, source)]),
    ),
    "./package.json": "./package.json",
  },
  // For resolvers that do not know `exports`.
  main: "./cjs/keywright.js",
  types: "./cjs/types/client/index.d.ts",
  typesVersions: {
    "*": Object.fromEntries(entries.map(([name, source]) => [name, [`./cjs/types/client/${source}.d.ts`]])),
  },
  engines: { node: ">=20.19.0" },
  // The bundles have no dependencies; the types refer to the caller's own ethers signer and to the schemas.
  peerDependencies: {
    ethers: `^${dependencies.ethers}`,
    viem: `^${dependencies.viem}`,
    esbuild: `^${devDependencies.esbuild}`,
    "isolated-vm": `^${dependencies["isolated-vm"]}`,
    zod: `^${dependencies.zod}`,
  },
  peerDependenciesMeta: {
    ethers: { optional: true },
    viem: { optional: true },
    esbuild: { optional: true },
    "isolated-vm": { optional: true },
    zod: { optional: true },
  },
};

rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
for (const name of Object.keys({ ...FOR_BROWSERS, ...OVER_PEERS }))
  for (const end of ["mjs", "mjs.map"]) copyFileSync(join(bundles, `${name}.${end}`), join(target, `${name}.${end}`));
for (const file of ["LICENSE"]) copyFileSync(join(root, file), join(target, file));
copyFileSync(join(root, "client", "README.md"), join(target, "README.md"));
writeFileSync(join(target, "package.json"), `${JSON.stringify(description, null, 2)}\n`);
writeTypes();
await Promise.all([bundleForNode(), bundleForRequire(), bundleSandbox()]);
