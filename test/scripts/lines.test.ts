/** Lines of at most 120 characters in the files that eslint's `max-len` does not read. */
import { expect } from "chai";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(__dirname, "..", "..");
const LONGEST = 120;
const FILES = [
  "**/*.{css,yaml,sh,cjs,sol}",
  "examples/**/*.{js,mjs}",
  ".ci/run",
  ".dependency-cruiser.cjs",
  ".mocharc.cjs",
];
const FOREIGN = new Set(["node_modules", "dist", "artifacts", "cache", ".git"]);

describe("lines of contracts, settings, styles, scripts and examples", () => {
  it(`have at most ${LONGEST} characters`, () => {
    const files = FILES.flatMap((pattern) => globSync(pattern, { cwd: ROOT, exclude: (name) => FOREIGN.has(name) }));
    expect(files).to.include.members(["compose.yaml", "scripts/run.sh", "examples/hello.js"]);
    const long = files.flatMap((file) =>
      readFileSync(join(ROOT, file), "utf8")
        .split("\n")
        .flatMap((line, index) => ([...line].length > LONGEST ? [`${file}:${index + 1}`] : [])),
    );
    expect(long).to.deep.equal([]);
  });
});
