// `npm run sdk`: the SDK as a package of its own in dist/sdk, to be installed by path, packed or published: the bundles with their types.
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const target = process.argv[2] ?? join(root, "dist", "sdk");
const bundles = join(root, "dist", "client", "browser");

function writeTypes() {
  const args = ["--noEmit", "false", "--emitDeclarationOnly", "--declaration", "--incremental", "false", "--tsBuildInfoFile", "null", "--rootDir", "."];
  const config = join(root, "client", "tsconfig.json");
  const { status } = spawnSync(
    process.execPath,
    [join(root, "node_modules", "typescript", "bin", "tsc"), "-p", config, ...args, "--outDir", join(target, "types")],
    {
      cwd: root,
      stdio: "inherit",
    },
  );
  if (status !== 0) process.exit(status ?? 1);
  for (const file of readdirSync(join(target, "types"), { recursive: true })) if (file.endsWith(".d.ts")) nameFiles(join(target, "types", file));
}

/** An ES module names the file it imports; the sources, which are CommonJS, do not. */
function nameFiles(file) {
  const text = readFileSync(file, "utf8").replace(/(from |import\()"(\.{1,2}(?:\/[^"]*)?)"/g, (_, start, path) => {
    const whole = existsSync(join(dirname(file), `${path}.d.ts`)) ? `${path}.js` : `${path.replace(/\/$/, "")}/index.js`;
    return `${start}"${whole}"`;
  });
  writeFileSync(file, text);
}

const { version, license, dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const entry = (name, source) => ({ types: `./types/client/${source}.d.ts`, default: `./${name}.mjs` });
const description = {
  name: "keywright",
  version,
  description: "Client of a Keywright service: API mode, ChainSecured wallets and multisigs",
  license,
  type: "module",
  sideEffects: false,
  exports: { ".": entry("keywright", "index"), "./cid": entry("cid", "cid") },
  // The bundles need nothing; the types are those of the caller's own ethers signer and of the schemas.
  peerDependencies: { ethers: `^${dependencies.ethers}`, zod: `^${dependencies.zod}` },
  peerDependenciesMeta: { ethers: { optional: true }, zod: { optional: true } },
};

rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
for (const name of ["keywright", "cid"]) copyFileSync(join(bundles, `${name}.mjs`), join(target, `${name}.mjs`));
copyFileSync(join(root, "LICENSE"), join(target, "LICENSE"));
writeFileSync(join(target, "package.json"), `${JSON.stringify(description, null, 2)}\n`);
writeTypes();
