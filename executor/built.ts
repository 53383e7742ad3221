import { extname, join } from "node:path";

/** Path of a built file of the executor: below dist/ even if this module was loaded from its source. */
export function built(path: string): string {
  return extname(__filename) === ".ts" ? join(__dirname, "..", "dist", "executor", path) : join(__dirname, path);
}
