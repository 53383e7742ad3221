/**
 * A new embedded database with its tables as an archive, made once and kept beside the packages: making one takes four
 * seconds, unpacking this a tenth of that. For `npm start` and the tests.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { openStore } from "../../relayer/store/index";

const ROOT = join(__dirname, "..", "..", ...(__filename.endsWith(".ts") ? [] : [".."]));
const MODULES = join(ROOT, "node_modules");

const CACHE = join(MODULES, ".cache");
const STORE = join(ROOT, "relayer", "store");

/** Of everything that decides what a new database holds. */
function digest(): string {
  const hash = createHash("sha256").update("without templates");
  hash.update(readFileSync(join(MODULES, "@electric-sql", "pglite", "package.json")));
  const files = readdirSync(STORE, { recursive: true }).map(String);
  for (const file of files.filter((name) => name.endsWith(".ts")).sort())
    hash.update(`${file}\0`).update(readFileSync(join(STORE, file)));
  return hash.digest("hex").slice(0, 16);
}

/** The archive's path. */
async function archive(): Promise<string> {
  const file = join(CACHE, `database-${digest()}.tar`);
  if (existsSync(file)) return file;
  const folder = mkdtempSync(join(tmpdir(), "keywright-database-"));
  try {
    await (await openStore({ dataDir: folder })).close();
    const database = await PGlite.create(join(folder, "pglite"));
    await dropTemplates(database);
    const bytes = new Uint8Array(await (await database.dumpDataDir("none")).arrayBuffer());
    await database.close();
    mkdirSync(CACHE, { recursive: true });
    writeFileSync(`${file}.${process.pid}`, bytes);
    renameSync(`${file}.${process.pid}`, file);
    // Another process may have made the same one, and remove the same older ones, at the same time.
    for (const name of readdirSync(CACHE))
      if (/^database-.*\.tar$/.test(name) && join(CACHE, name) !== file) rmSync(join(CACHE, name), { force: true });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return file;
}

/** Nobody makes another database from them, and unpacking them takes a third of the time. */
async function dropTemplates(database: PGlite): Promise<void> {
  await database.exec("update pg_database set datistemplate = false");
  for (const name of ["template0", "template1"]) await database.exec(`drop database ${name}`);
}

/** The archive, for a database in memory. */
export async function newDatabase(): Promise<Blob> {
  return new Blob([readFileSync(await archive())]);
}

/** Puts a new database into this folder, unless it has one. */
export async function prepareDatabase(folder: string): Promise<void> {
  if (existsSync(folder)) return;
  // Under another name until it is complete: who is stopped in between begins again.
  const unpacked = `${folder}.new`;
  rmSync(unpacked, { recursive: true, force: true });
  mkdirSync(unpacked, { recursive: true, mode: 0o700 });
  execFileSync("tar", ["-xf", await archive(), "-C", unpacked], { stdio: "pipe" });
  renameSync(unpacked, folder);
}
