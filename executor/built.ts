import { extname, join } from "node:path";

/** A file of this room as it runs: below dist/, also when the caller was loaded from its source. */
export function built(path: string): string {
  return extname(__filename) === ".ts" ? join(__dirname, "..", "dist", "executor", path) : join(__dirname, path);
}
