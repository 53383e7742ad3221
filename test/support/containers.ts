/**
 * The images' root file systems under crun, with exactly what compose.yaml allows each service: user, capabilities,
 * read-only root, no new privileges, volumes, memory. Uses the machine's network, since the tests' chain and PostgreSQL
 * are there.
 */
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { parse } from "yaml";
import { startProcess, type ManagedProcess } from "../../scripts/dev/processes";

const run = promisify(execFile);
const ROOT = join(__dirname, "..", "..");

export interface ComposeService {
  readonly environment: Readonly<Record<string, string>>;
  readonly read_only: boolean;
  readonly security_opt: readonly string[];
  readonly cap_drop: readonly string[];
  readonly cap_add?: readonly string[];
  readonly volumes: readonly string[];
  readonly tmpfs: readonly string[];
  readonly mem_limit: string;
}
export const COMPOSE = (
  parse(readFileSync(join(ROOT, "compose.yaml"), "utf8"), { merge: true }) as {
    services: Record<"relayer" | "executor" | "ingress", ComposeService>;
  }
).services;

interface ImageConfig {
  readonly config: {
    readonly User: string;
    readonly Env: string[];
    readonly Entrypoint: string[];
    readonly Cmd: string[];
    readonly WorkingDir: string;
  };
}

export interface ContainerOptions {
  readonly name: keyof typeof COMPOSE;
  /** An OCI layout. */
  readonly layout: string;
  /** Its unpacked files; mount points are added. */
  readonly files: string;
  /** A folder for bundles. */
  readonly folder: string;
  /** Values of the compose file's variables. */
  readonly variables: Readonly<Record<string, string>>;
  /** Host paths of the compose file's volumes, by the path inside; and additional read-only mounts. */
  readonly volumes: Readonly<Record<string, string>>;
  readonly extra?: Readonly<Record<string, string>>;
  /** The test's ports instead of the file's, and addresses of PostgreSQL. */
  readonly environment: Readonly<Record<string, string>>;
  readonly onLine: (line: string) => void;
}

export async function startContainer(options: ContainerOptions): Promise<ManagedProcess> {
  const bundle = join(options.folder, options.name);
  mkdirSync(bundle, { recursive: true });
  const spec = specOf(options, imageConfig(options.layout));
  for (const { destination, source, type } of spec.mounts)
    if (type === "bind") mountPoint(join(options.files, destination), source);
  writeFileSync(join(bundle, "config.json"), JSON.stringify(spec));
  const crun = `
    umount /sys/fs/cgroup/unified 2>/dev/null
    exec crun --root "$1/crun" --cgroup-manager=cgroupfs run --bundle "$1" "$2"`;
  const id = `keywright-${options.name}-${process.pid}`;
  return startProcess({
    name: options.name,
    command: "unshare",
    args: ["--mount", "--propagation", "private", "sh", "-c", crun, "sh", bundle, id],
    env: { PATH: process.env["PATH"] },
    onLine: options.onLine,
  });
}

const blobOf = (layout: string, digest: string): unknown =>
  JSON.parse(readFileSync(join(layout, "blobs", "sha256", digest.replace("sha256:", "")), "utf8"));

interface Manifest {
  readonly config: { readonly digest: string };
  readonly layers: readonly { readonly digest: string }[];
}

/** Of a layout's only image. */
function manifestOf(layout: string): Manifest {
  const { manifests } = JSON.parse(readFileSync(join(layout, "index.json"), "utf8")) as {
    manifests: { digest: string }[];
  };
  return blobOf(layout, manifests[0]?.digest ?? "") as Manifest;
}

const imageConfig = (layout: string): ImageConfig => blobOf(layout, manifestOf(layout).config.digest) as ImageConfig;

/** Unpacks images below a folder, those of the same layers once: unpacking takes six seconds of a core. */
export function unpackerTo(folder: string): (layout: string) => Promise<string> {
  const unpacked = new Map<string, Promise<string>>();
  const unpack = async (layout: string, to: string): Promise<string> => {
    mkdirSync(folder, { recursive: true });
    await run("umoci", ["raw", "unpack", "--image", `${layout}:latest`, to]);
    return to;
  };
  return (layout) => {
    const layers = manifestOf(layout)
      .layers.map(({ digest }) => digest)
      .join();
    const files = unpacked.get(layers) ?? unpack(layout, join(folder, String(unpacked.size)));
    unpacked.set(layers, files);
    return files;
  };
}

interface Mount {
  destination: string;
  type: string;
  source: string;
  options: string[];
}

function specOf(options: ContainerOptions, { config }: ImageConfig) {
  const service = COMPOSE[options.name];
  const [uid = 0, gid = 0] = config.User.split(":").map(Number);
  if (service.cap_drop.join() !== "ALL") throw new Error("the compose file drops all capabilities first");
  // A user other than root gets capabilities in its bounding set only, which has no effect unless a program acquires
  // them.
  const granted = (service.cap_add ?? []).map((name) => `CAP_${name}`);
  const held = uid === 0 ? granted : [];
  return {
    ociVersion: "1.0.2",
    process: {
      terminal: false,
      user: { uid, gid },
      args: [...config.Entrypoint, ...config.Cmd],
      env: [...config.Env, ...environmentOf(service, options)],
      cwd: config.WorkingDir,
      capabilities: { bounding: granted, effective: held, permitted: held, inheritable: [], ambient: [] },
      noNewPrivileges: service.security_opt.includes("no-new-privileges:true"),
    },
    root: { path: options.files, readonly: service.read_only },
    hostname: options.name,
    mounts: [...systemMounts(), ...service.tmpfs.map(tmpfs), ...volumesOf(service, options), ...extraMounts(options)],
    linux: {
      namespaces: ["pid", "ipc", "uts", "mount"].map((type) => ({ type })),
      resources: {
        memory: { limit: bytesOf(substituted(service.mem_limit, options.variables)) },
        devices: [{ allow: false, access: "rwm" }],
      },
      maskedPaths: [
        "/proc/acpi",
        "/proc/kcore",
        "/proc/keys",
        "/proc/latency_stats",
        "/proc/timer_list",
        "/proc/timer_stats",
        "/proc/sched_debug",
        "/sys/firmware",
      ],
      readonlyPaths: ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
    },
  };
}

const systemMounts = (): Mount[] => [
  { destination: "/proc", type: "proc", source: "proc", options: ["nosuid", "noexec", "nodev"] },
  {
    destination: "/dev",
    type: "tmpfs",
    source: "tmpfs",
    options: ["nosuid", "strictatime", "mode=755", "size=65536k"],
  },
  {
    destination: "/dev/shm",
    type: "tmpfs",
    source: "shm",
    options: ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"],
  },
  { destination: "/sys", type: "bind", source: "/sys", options: ["rbind", "ro", "nosuid", "noexec", "nodev"] },
];
const tmpfs = (destination: string): Mount => ({
  destination,
  type: "tmpfs",
  source: "tmpfs",
  options: ["nosuid", "nodev", "mode=1777"],
});

/** Each volume of the file, from the test's host path; `:ro` as in the file. */
function volumesOf({ volumes }: ComposeService, options: ContainerOptions): Mount[] {
  return volumes.map((volume) => {
    const isReadOnly = volume.endsWith(":ro");
    const destination = substituted(volume, options.variables).replace(/:ro$/, "").split(":").at(-1) ?? "";
    const source = options.volumes[destination];
    if (source === undefined) throw new Error(`the test gives no place for the volume ${destination}`);
    return { destination, type: "bind", source, options: ["rbind", isReadOnly ? "ro" : "rw"] };
  });
}

const extraMounts = ({ extra = {} }: ContainerOptions): Mount[] =>
  Object.entries(extra).map(([destination, source]) => ({
    destination,
    type: "bind",
    source,
    options: ["rbind", "ro"],
  }));

function environmentOf({ environment }: ComposeService, { variables, environment: own }: ContainerOptions): string[] {
  const given = Object.entries({ ...environment, ...own }).map(
    ([name, value]) => `${name}=${substituted(String(value), variables)}`,
  );
  return given;
}

/** Variables as compose substitutes them: `${NAME:-default}`, and `${NAME:?…}` for those that must be given. */
export function substituted(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replace(
    /\$\{(\w+)(?::([-?])([^}]*))?\}/g,
    (_, name: string, kind: string | undefined, rest: string | undefined) => {
      const value = variables[name];
      if (value !== undefined && value !== "") return value;
      if (kind === "?") throw new Error(`the compose file needs ${name}`);
      return rest ?? "";
    },
  );
}

function bytesOf(size: string): number {
  const [, number = "0", unit = "g"] = /^(\d+)([mg])$/.exec(size) ?? [];
  return Number(number) * (unit === "g" ? 2 ** 30 : 2 ** 20);
}

/** Creates a mount point, as a runtime does before it makes the root read-only. */
function mountPoint(path: string, source: string): void {
  if (existsSync(path)) return;
  mkdirSync(join(path, ".."), { recursive: true });
  const isFolder = existsSync(source) && !source.endsWith(".sock") && !/\.\w+$/.test(source);
  if (isFolder) mkdirSync(path);
  else writeFileSync(path, "");
}

/** A copy of a built file with one change: the only permitted difference from the image. */
export function patchedCopy(file: string, to: string, from: string, by: string): string {
  const text = readFileSync(file, "utf8");
  if (text.split(from).length !== 2) throw new Error(`${file} does not hold ${from} exactly once`);
  cpSync(file, to);
  writeFileSync(to, text.replace(from, by));
  return to;
}
