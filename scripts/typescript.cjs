// Lets Node load TypeScript files: each is compiled by itself, as scripts/build.mjs does. For tests and for scripts
// that nothing else starts; ts-node takes ten times as long.
const { readFileSync } = require("node:fs");
const { transformSync } = require("esbuild");

process.setSourceMapsEnabled(true);
const options = {
  loader: "ts",
  format: "cjs",
  platform: "node",
  target: "node24",
  sourcemap: "inline",
  sourcesContent: false,
};

require.extensions[".ts"] = (module, path) => {
  const { code } = transformSync(readFileSync(path, "utf8"), { ...options, sourcefile: path });
  module._compile(code, path);
};
