/**
 * How the executor starts its own processes: with as little of the machine in reach as this machine allows. What was reached is for the processes' self-tests to
 * find out, not assumed here.
 *
 * With bubblewrap: a filter of system calls, a process namespace, and a file system that holds the program and the system's libraries, nothing else, read-only.
 * Without it, what `unshare`, `setpriv` and `prlimit` can do.
 */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { lstatSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import type { Duplex, Readable, Writable } from "node:stream";
import { seccompFilter, type FilterName } from "./seccomp";

export interface Walls {
  filter: FilterName;
  /** An empty network namespace. */
  withoutNetwork: boolean;
  /** Files and folders the program reads beside Node and the system's libraries. */
  reads: readonly string[];
  /** A cap of the kernel on what it may write to in memory. */
  dataBytes?: number;
}

export interface Confined {
  /** The outermost process: its end is the program's end. */
  readonly process: ChildProcess;
  /** Descriptor 3 of the program. */
  readonly channel: Duplex;
  /** The program's own id, which is not its wrapper's; undefined before it runs. */
  programId(): number | undefined;
}

const LIMITS = ["prlimit", "--core=0:0", "--fsize=0:0", "--nofile=1024:1024"];
const EMPTY_NETWORK = ["unshare", "--net", "--ipc", "--"];

/** The wrappers of a machine without bubblewrap, each used where it works. */
const WITHOUT_BUBBLEWRAP = {
  root: { network: EMPTY_NETWORK, privileges: ["setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all,+setuid,+setgid", "--"] },
  user: { network: ["unshare", "--user", "--net", "--ipc", "--"], privileges: ["setpriv", "--no-new-privs", "--"] },
};

const isRoot = (): boolean => process.getuid?.() === 0;
const architecture = process.arch === "arm64" ? "arm64" : "x64";

let bubblewrap: Promise<string | undefined> | undefined;
/** What bubblewrap said when it was tried; undefined when it works. Set by `findWalls`. */
let complaint: string | undefined = "it was not tried";

/** Finds out once what this machine can do; to be awaited before the first `startConfined`. Resolves to what keeps bubblewrap from working, if anything. */
export async function findWalls(): Promise<string | undefined> {
  bubblewrap ??= tryBubblewrap();
  return (complaint = await bubblewrap);
}

/** Starts Node with these arguments. Standard error is a pipe, descriptor 3 the channel, standard output goes where `stdout` says. */
export function startConfined(nodeArguments: readonly string[], walls: Walls, stdout: "ignore" | "pipe" = "ignore"): Confined {
  const node = [process.execPath, ...nodeArguments];
  return complaint === undefined ? startInBubblewrap(node, walls, stdout) : startInWrappers(node, walls, stdout);
}

/**
 * Becomes another user, once everything needed has been read: not done before the start, so that the program may lie where that user cannot read. The wrappers
 * leave the right to do this, and with it done even that is gone.
 */
export function becomeUser(uid: number | undefined): void {
  if (!uid || !isRoot()) return;
  process.setgroups?.([uid]);
  process.setgid?.(uid);
  process.setuid?.(uid);
}

function startInBubblewrap(node: string[], walls: Walls, stdout: "ignore" | "pipe"): Confined {
  const [command = "", ...args] = [...limits(walls), ...bubblewrapFor(walls), ...node];
  const wrapper = spawn(command, args, { cwd: "/", env: { TZ: "UTC" }, stdio: ["ignore", stdout, "pipe", "pipe", "pipe", "pipe"] });
  const filter = wrapper.stdio[4] as Writable;
  // A wrapper that could not be started reads nothing; its exit tells more.
  filter.on("error", () => undefined);
  filter.end(seccompFilter(walls.filter, architecture));
  let status = "";
  ((wrapper.stdio as readonly unknown[])[5] as Readable).setEncoding("utf8").on("data", (text: string) => (status += text));
  return { process: wrapper, channel: wrapper.stdio[3] as Duplex, programId: () => programBelow(status) };
}

/** bubblewrap tells the id of the first process in the namespace; the program is that one's only child. */
function programBelow(status: string): number | undefined {
  const first = /"child-pid":\s*(\d+)/.exec(status)?.[1];
  if (first === undefined) return undefined;
  try {
    return Number(readFileSync(`/proc/${first}/task/${first}/children`, "latin1").trim()) || undefined;
  } catch {
    return undefined;
  }
}

function startInWrappers(node: string[], walls: Walls, stdout: "ignore" | "pipe"): Confined {
  const { network, privileges } = isRoot() ? WITHOUT_BUBBLEWRAP.root : WITHOUT_BUBBLEWRAP.user;
  const wrappers = [...(walls.withoutNetwork ? usable(network) : []), ...usable(privileges), ...usable(limits(walls))];
  const [command = "", ...args] = [...wrappers, ...node];
  const program = spawn(command, args, { cwd: "/", env: { TZ: "UTC" }, stdio: ["ignore", stdout, "pipe", "pipe"] });
  return { process: program, channel: program.stdio[3] as Duplex, programId: () => program.pid };
}

const tried = new Map<string, boolean>();
/** Wrappers like these replace themselves by what they start: what works for `true` works for the program. */
function usable(wrapper: string[]): string[] {
  const [command = "", ...args] = wrapper;
  const works = tried.get(wrapper.join(" ")) ?? spawnSync(command, [...args, "true"], { stdio: "ignore" }).status === 0;
  tried.set(wrapper.join(" "), works);
  return works ? wrapper : [];
}

function limits({ dataBytes }: Walls): string[] {
  const processes = isRoot() ? ["--nproc=512:512"] : [];
  return [...LIMITS, ...processes, ...(dataBytes === undefined ? [] : [`--data=${dataBytes}:${dataBytes}`]), "--"];
}

/** As root without a user namespace, which would map one user only; the network then comes from `unshare`, which leaves even the loopback down. */
function bubblewrapFor({ withoutNetwork, reads }: Walls): string[] {
  const before = isRoot() && withoutNetwork ? EMPTY_NETWORK : [];
  const users = isRoot() ? ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] : ["--unshare-user"];
  const network = withoutNetwork ? (isRoot() ? [] : ["--unshare-net"]) : [...FOLDERS_OF_NAME_SERVICE, ...readable(NAME_SERVICE)];
  const namespaces = ["--unshare-ipc", "--unshare-uts", "--unshare-pid", "--unshare-cgroup-try", "--die-with-parent", "--new-session"];
  const devices = ["--dev-bind", "/dev/null", "/dev/null", "--dev-bind", "/dev/urandom", "/dev/urandom"];
  const files = ["--tmpfs", "/", ...network, ...readable(LIBRARIES), ...readable([realpathSync(process.execPath), ...reads]), ...devices];
  const descriptors = ["--seccomp", "4", "--json-status-fd", "5"];
  return [...before, "bwrap", ...namespaces, ...users, ...files, "--proc", "/proc", "--remount-ro", "/", "--chdir", "/", ...descriptors, "--"];
}

const LIBRARIES = ["/usr/lib", "/usr/lib64", "/lib", "/lib64", "/etc/ld.so.cache", "/usr/share/zoneinfo"];
/** What resolving a name reads; `/etc` as a whole, since its files are replaced while the fetcher runs. */
const NAME_SERVICE = ["/etc", "/run/systemd/resolve"];
/** Folders that bubblewrap makes by itself are closed to other users than root. */
const FOLDERS_OF_NAME_SERVICE = ["/usr", "/run", "/run/systemd"].flatMap((path) => ["--dir", path]);

/** Mounts of what exists. A link at the top, such as /lib to usr/lib, is made anew. */
function readable(paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    const facts = lstatSync(path, { throwIfNoEntry: false });
    if (facts === undefined) return [];
    return facts.isSymbolicLink() ? ["--symlink", readlinkSync(path), path] : ["--ro-bind", path, path];
  });
}

async function tryBubblewrap(): Promise<string | undefined> {
  if (process.platform !== "linux") return "it is for Linux only";
  const { process: wrapper, channel } = startInBubblewrap([process.execPath, "--version"], { filter: "child", withoutNetwork: true, reads: [] }, "ignore");
  channel.on("error", () => undefined);
  let said = "";
  wrapper.stderr?.setEncoding("utf8").on("data", (text: string) => (said = (said + text).slice(0, 500)));
  return new Promise((resolve) => {
    wrapper.once("error", (error) => resolve(error.message));
    wrapper.once("close", (code) => resolve(code === 0 ? undefined : said.trim() || `it ended with code ${code}`));
  });
}
