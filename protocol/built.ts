import { extname, join, relative } from "node:path";

/**
 * The path of a built file in the folder of its caller: under dist/ if the caller runs from its source. `folder` is the
 * caller's `__dirname`.
 */
export function builtFile(folder: string, name: string): string {
  if (extname(__filename) !== ".ts") return join(folder, name);
  const root = join(__dirname, "..");
  return join(root, "dist", relative(root, folder), name);
}
