/** Hashes of the packages that this build's relayer serves, by file name, in the form of npm's lockfiles. */
import { existsSync, readFileSync } from "node:fs";
import { z } from "zod";
import { builtFile } from "../../protocol/built";

const indexSchema = z.record(z.string(), z.string().regex(/^sha512-[A-Za-z0-9+/]{86}==$/));

export function servedPackages(): Readonly<Record<string, string>> | undefined {
  const file = builtFile(__dirname, "../../packages/index.json");
  return existsSync(file) ? indexSchema.parse(JSON.parse(readFileSync(file, "utf8"))) : undefined;
}
