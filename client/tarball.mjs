// The package as the service serves it: dist/packages/keywright-<version>.tgz, and its hash in the form npm writes into
// lockfiles. The same sources give the same bytes. Made again only when something it is made of has changed.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { pack } from "tar-stream";

const SOURCES = ["client", "protocol", "executor", "scripts/action", "scripts/action.ts", "typechain-types"];
const OTHERS = ["package.json", "package-lock.json", "LICENSE"];
const BEST = 9;

export default async function packForServing({ root }) {
  const folder = join(root, "dist", "packages");
  const { name, version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const file = `${name}-${version}.tgz`;
  const inputs = inputsOf(root);
  const state = join(folder, "inputs.sha256");
  if (existsSync(join(folder, file)) && existsSync(state) && readFileSync(state, "utf8") === inputs) return;
  await promisify(execFile)(process.execPath, [join(root, "client", "package.mjs")]);
  const bytes = await tarball(join(root, "dist", "sdk"));
  const integrity = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  mkdirSync(folder, { recursive: true });
  written(join(folder, file), bytes);
  written(join(folder, "index.json"), `${JSON.stringify({ [file]: integrity }, null, 2)}\n`);
  written(state, inputs);
}

/** A running service may read the file meanwhile. */
function written(file, content) {
  writeFileSync(`${file}.${process.pid}`, content);
  renameSync(`${file}.${process.pid}`, file);
}

const filesBelow = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();

/** Node compresses: another version may give other bytes. */
function inputsOf(root) {
  const hash = createHash("sha256").update(process.version);
  const paths = [...SOURCES, ...OTHERS].map((path) => join(root, path));
  for (const file of paths.flatMap((path) => (statSync(path).isDirectory() ? filesBelow(path) : [path])))
    hash.update(`${file.slice(root.length)}\n`).update(createHash("sha256").update(readFileSync(file)).digest());
  return `${hash.digest("hex")}\n`;
}

/** As `npm pack` lays it out; sorted, without owners and times. */
async function tarball(folder) {
  const archive = pack();
  for (const file of filesBelow(folder)) {
    const name = `package${file.slice(folder.length)}`;
    const mode = statSync(file).mode & 0o100 ? 0o755 : 0o644;
    archive.entry({ name, mode, mtime: new Date(0), uid: 0, gid: 0 }, readFileSync(file));
  }
  archive.finalize();
  const chunks = [];
  for await (const chunk of archive) chunks.push(chunk);
  return gzipSync(Buffer.concat(chunks), { level: BEST });
}
