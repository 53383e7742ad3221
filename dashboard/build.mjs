// Builds the dashboard as static files under dist/dashboard with hashed names, and precompresses each text file with
// brotli and gzip. Skipped when no input has changed.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const SOURCES = ["dashboard", "client", "protocol", "typechain-types", "examples"];
const STAMP = ".sources";

/** One digest over every source file's name and text, the locked packages and the given options. */
function digestOf(root) {
  const hash = createHash("sha256");
  const add = (path) => hash.update(`${path}\0`).update(readFileSync(join(root, path)));
  for (const folder of SOURCES) {
    const files = readdirSync(join(root, folder), { recursive: true }).map((file) => join(folder, String(file)));
    for (const file of files.sort()) if (statSync(join(root, file)).isFile()) add(file);
  }
  add("package-lock.json");
  return hash.digest("hex");
}

function compress(folder) {
  for (const file of readdirSync(folder)) {
    if (!/\.(js|css|svg)$/.test(file)) continue;
    const content = readFileSync(join(folder, file));
    const brotli = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
    writeFileSync(join(folder, `${file}.br`), brotliCompressSync(content, { params: brotli }));
    writeFileSync(join(folder, `${file}.gz`), gzipSync(content, { level: 9 }));
  }
}

export default async function buildDashboard({ root, outdir }) {
  const stamp = join(outdir, STAMP);
  const digest = digestOf(root);
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === digest) return;
  const { build } = await import("vite");
  const { default: configuration } = await import("./vite.config.mjs");
  rmSync(outdir, { recursive: true, force: true });
  mkdirSync(outdir, { recursive: true });
  await build(configuration({ root, outdir }));
  compress(join(outdir, "assets"));
  writeFileSync(stamp, digest);
}
