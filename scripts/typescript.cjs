// Lets Node load TypeScript files: each is compiled by itself, as scripts/build.mjs does. For tests and for scripts
// that nothing else starts; ts-node takes ten times as long. What was compiled is kept beside the packages by its
// content: ten suites of one run load mostly the same files.
const { createHash } = require("node:crypto");
const { mkdirSync, readFileSync, renameSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");
const { version } = require("esbuild/package.json");

process.setSourceMapsEnabled(true);
const options = {
  loader: "ts",
  format: "cjs",
  platform: "node",
  target: "node24",
  sourcemap: "inline",
  sourcesContent: false,
};
const CACHE = join(__dirname, "..", "node_modules", ".cache", "typescript");
const WITH = JSON.stringify([version, options]);

require.extensions[".ts"] = (module, path) => {
  module._compile(compiled(readFileSync(path, "utf8"), path), path);
};

/** The path counts too, since the source map names it. */
function compiled(source, path) {
  const hash = createHash("sha256").update(`${WITH}\0${path}\0`).update(source).digest("hex");
  const file = join(CACHE, `${hash.slice(0, 32)}.js`);
  try {
    return readFileSync(file, "utf8");
  } catch {
    const { code } = require("esbuild").transformSync(source, { ...options, sourcefile: path });
    keep(file, code);
    return code;
  }
}

function keep(file, code) {
  try {
    mkdirSync(CACHE, { recursive: true });
    // Under another name until it is complete: other suites compile at the same time.
    writeFileSync(`${file}.${process.pid}`, code);
    renameSync(`${file}.${process.pid}`, file);
  } catch {
    // Without a copy, as where the packages are another user's, it takes longer.
  }
}
