/**
 * Starts the executor's processes with as little access as this machine can enforce. What was enforced is not assumed
 * here: the processes' self-tests find out.
 *
 * With bubblewrap: a system call filter, a process namespace, and a read-only file system with only the program and the
 * system's libraries. Without it: what `unshare`, `setpriv` and `prlimit` can do.
 */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { lstatSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import type { Socket } from "node:net";
import type { Duplex, Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { GUEST_PRIORITY, setPriorities, type Priority } from "./priority";
import { seccompFilter, type FilterName } from "./seccomp";

export interface Confinement {
  filter: FilterName;
  /** Run in an empty network namespace. */
  withoutNetwork: boolean;
  /** Files and folders the program reads besides Node and the system's libraries. */
  reads: readonly string[];
  /** Kernel limit on its writable memory (RLIMIT_DATA). */
  dataBytes?: number;
  priority: Priority;
}

export interface Streams {
  /** Standard output: a pipe, or `ignore`, which is the default. */
  readonly stdout?: "ignore" | "pipe";
  /** A connected socket to pass on as descriptor 3; a new pipe unless given. */
  readonly channel?: Socket;
}

export interface Confined {
  /** The outermost wrapper process; it ends with the program. */
  readonly process: ChildProcess;
  /** Descriptor 3 of the program, unless one was given. */
  readonly channel: Duplex;
  /** The process id of the program itself, not of its wrapper, once it runs; undefined if it has ended. */
  programId(): Promise<number | undefined>;
  /** Ends the program and its wrappers with SIGKILL, also while they start. */
  kill(): void;
}

const LIMITS = ["prlimit", "--core=0:0", "--fsize=0:0", "--nofile=1024:1024"];
const EMPTY_NETWORK = ["unshare", "--net", "--ipc", "--"];

/** Wrappers for a machine without bubblewrap, each used only if it works. */
const WITHOUT_BUBBLEWRAP = {
  root: {
    network: EMPTY_NETWORK,
    privileges: ["setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all,+setuid,+setgid", "--"],
  },
  user: { network: ["unshare", "--user", "--net", "--ipc", "--"], privileges: ["setpriv", "--no-new-privs", "--"] },
};

const isRoot = (): boolean => process.getuid?.() === 0;
const architecture = process.arch === "arm64" ? "arm64" : "x64";

/** The reason on a machine without it. */
export const NOT_INSTALLED = "it is not installed";

let bubblewrap: Promise<string | undefined> | undefined;
/** Why bubblewrap does not work; undefined when it does. Set by `detectConfinement`. */
let bubblewrapProblem: string | undefined = "it was not tried";

/**
 * Tests once what this machine supports; await it before the first `startConfined`. Resolves to the reason why
 * bubblewrap does not work, if any.
 */
export async function detectConfinement(): Promise<string | undefined> {
  bubblewrap ??= tryBubblewrap();
  return (bubblewrapProblem = await bubblewrap);
}

/** Starts Node with these arguments. Standard error is a pipe, descriptor 3 the channel. */
export function startConfined(
  nodeArguments: readonly string[],
  confinement: Confinement,
  streams: Streams = {},
): Confined {
  const node = [process.execPath, ...nodeArguments];
  const start = bubblewrapProblem === undefined ? startInBubblewrap : startInWrappers;
  const confined = start(node, confinement, streams);
  setPriorities(confined.process.pid, confinement.priority);
  return confined;
}

/**
 * Switches to another user after everything needed has been read. Not done before the start, so that the program may
 * lie where that user cannot read. The wrappers leave only the capabilities for this switch, and the switch drops them.
 */
export function becomeUser(uid: number | undefined): void {
  if (!uid || !isRoot()) return;
  process.setgroups?.([uid]);
  process.setgid?.(uid);
  process.setuid?.(uid);
}

function startInBubblewrap(
  node: string[],
  confinement: Confinement,
  { stdout = "ignore", channel }: Streams,
): Confined {
  const [command = "", ...args] = [...limits(confinement), ...bubblewrapFor(confinement), ...node];
  const wrapper = spawn(command, args, {
    cwd: "/",
    env: { TZ: "UTC" },
    stdio: ["ignore", stdout, "pipe", channel ?? "pipe", "pipe", "pipe"],
    detached: true,
  });
  const filter = wrapper.stdio[4] as Writable;
  // A wrapper that failed to start does not read the filter; its exit reports the reason.
  filter.on("error", () => undefined);
  filter.end(seccompFilter(confinement.filter, architecture));
  const first = firstInNamespace((wrapper.stdio as readonly unknown[])[5] as Readable);
  return {
    process: wrapper,
    channel: wrapper.stdio[3] as Duplex,
    programId: async () => childOf(await first),
    kill: () => killGroup(wrapper),
  };
}

/**
 * `detached` gives the wrappers and the program a session and group of their own. Ending the first one only is not
 * enough: bubblewrap's second process waits for it without end if it is killed early.
 */
function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // All have exited.
  }
}

/** bubblewrap reports the id of the first process in the namespace; undefined if it ends without one. */
function firstInNamespace(status: Readable): Promise<number | undefined> {
  return new Promise((resolve) => {
    let text = "";
    status.setEncoding("utf8").on("data", (more: string) => {
      text += more;
      const id = /"child-pid":\s*(\d+)\D/.exec(text)?.[1];
      if (id !== undefined) resolve(Number(id));
    });
    status.once("close", () => resolve(undefined));
  });
}

const BETWEEN_LOOKS_MS = 5;

/** The first process of the namespace starts the program as its only child; undefined if the first one has ended. */
async function childOf(parent: number | undefined): Promise<number | undefined> {
  if (parent === undefined) return undefined;
  for (;;) {
    try {
      const child = Number(readFileSync(`/proc/${parent}/task/${parent}/children`, "latin1").trim());
      if (child !== 0) return child;
    } catch {
      return undefined;
    }
    await sleep(BETWEEN_LOOKS_MS);
  }
}

function startInWrappers(node: string[], confinement: Confinement, { stdout = "ignore", channel }: Streams): Confined {
  const { network, privileges } = isRoot() ? WITHOUT_BUBBLEWRAP.root : WITHOUT_BUBBLEWRAP.user;
  const wrappers = [
    ...(confinement.withoutNetwork ? usable(network) : []),
    ...usable(privileges),
    ...usable(limits(confinement)),
  ];
  const [command = "", ...args] = [...wrappers, ...node];
  const program = spawn(command, args, {
    cwd: "/",
    env: { TZ: "UTC" },
    stdio: ["ignore", stdout, "pipe", channel ?? "pipe"],
    detached: true,
  });
  return {
    process: program,
    channel: program.stdio[3] as Duplex,
    programId: async () => (program.exitCode === null && program.signalCode === null ? program.pid : undefined),
    kill: () => killGroup(program),
  };
}

const tried = new Map<string, boolean>();
/** These wrappers exec their command: if one works for `true`, it works for the program. */
function usable(wrapper: string[]): string[] {
  const [command = "", ...args] = wrapper;
  const works = tried.get(wrapper.join(" ")) ?? spawnSync(command, [...args, "true"], { stdio: "ignore" }).status === 0;
  tried.set(wrapper.join(" "), works);
  return works ? wrapper : [];
}

function limits({ dataBytes }: Confinement): string[] {
  const processes = isRoot() ? ["--nproc=512:512"] : [];
  return [...LIMITS, ...processes, ...(dataBytes === undefined ? [] : [`--data=${dataBytes}:${dataBytes}`]), "--"];
}

/**
 * As root no user namespace is created: it would map one user only. The network namespace then comes from `unshare`,
 * which leaves even the loopback interface down.
 */
function bubblewrapFor({ withoutNetwork, reads }: Confinement): string[] {
  const before = isRoot() && withoutNetwork ? EMPTY_NETWORK : [];
  const users = isRoot()
    ? ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    : ["--unshare-user"];
  const network = withoutNetwork
    ? isRoot()
      ? []
      : ["--unshare-net"]
    : [...FOLDERS_OF_NAME_SERVICE, ...readable(NAME_SERVICE)];
  const namespaces = ["--unshare-ipc", "--unshare-uts", "--unshare-pid", "--unshare-cgroup-try", "--die-with-parent"];
  const devices = ["--dev-bind", "/dev/null", "/dev/null", "--dev-bind", "/dev/urandom", "/dev/urandom"];
  const files = [
    "--tmpfs",
    "/",
    ...network,
    ...readable(LIBRARIES),
    ...readable([realpathSync(process.execPath), ...reads]),
    ...devices,
  ];
  const descriptors = ["--seccomp", "4", "--json-status-fd", "5"];
  return [
    ...before,
    "bwrap",
    ...namespaces,
    ...users,
    ...files,
    "--proc",
    "/proc",
    "--remount-ro",
    "/",
    "--chdir",
    "/",
    ...descriptors,
    "--",
  ];
}

const LIBRARIES = ["/usr/lib", "/usr/lib64", "/lib", "/lib64", "/etc/ld.so.cache", "/usr/share/zoneinfo"];
/** Files needed to resolve names. All of `/etc`, because its files are replaced while the fetcher runs. */
const NAME_SERVICE = ["/etc", "/run/systemd/resolve"];
/** Created explicitly: folders that bubblewrap creates itself are accessible to root only. */
const FOLDERS_OF_NAME_SERVICE = ["/usr", "/run", "/run/systemd"].flatMap((path) => ["--dir", path]);

/** Mounts for the paths that exist. Top-level links, such as /lib to usr/lib, are recreated. */
function readable(paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    const facts = lstatSync(path, { throwIfNoEntry: false });
    if (facts === undefined) return [];
    return facts.isSymbolicLink() ? ["--symlink", readlinkSync(path), path] : ["--ro-bind", path, path];
  });
}

async function tryBubblewrap(): Promise<string | undefined> {
  if (process.platform !== "linux") return "it is for Linux only";
  if (spawnSync("bwrap", ["--version"], { env: { TZ: "UTC" }, stdio: "ignore" }).error !== undefined)
    return NOT_INSTALLED;
  const { process: wrapper, channel } = startInBubblewrap(
    [process.execPath, "--version"],
    { filter: "child", withoutNetwork: true, reads: [], priority: GUEST_PRIORITY },
    {},
  );
  channel.on("error", () => undefined);
  let stderr = "";
  wrapper.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr = (stderr + text).slice(0, 500)));
  return new Promise((resolve) => {
    wrapper.once("error", (error) => resolve(error.message));
    wrapper.once("close", (code) => resolve(code === 0 ? undefined : stderr.trim() || `it ended with code ${code}`));
  });
}
