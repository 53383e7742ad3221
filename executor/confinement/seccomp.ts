/**
 * A kernel filter of the system calls that the executor's processes may make (seccomp, classic BPF). An allow-list:
 * other calls fail with EPERM, and calls that only an attacker makes end the process. Numbers and values:
 * linux/seccomp.h, linux/audit.h, linux/bpf_common.h.
 */
import { SYSCALLS, type Syscall } from "./syscalls";

/** `child` runs actions and has no sockets; `fetcher` makes network connections. */
export type FilterName = "child" | "fetcher";
export type Architecture = "x64" | "arm64";

/** Calls of a child over its whole life. */
const FOR_ALL: Syscall[] = [
  ...([
    "read",
    "write",
    "futex",
    "epoll_pwait",
    "madvise",
    "mprotect",
    "mmap",
    "munmap",
    "clock_gettime",
    "epoll_ctl",
    "epoll_wait",
  ] as const),
  ...([
    "readv",
    "writev",
    "pread64",
    "lseek",
    "close",
    "dup",
    "dup2",
    "dup3",
    "fcntl",
    "stat",
    "lstat",
    "fstat",
    "newfstatat",
    "statx",
  ] as const),
  ...(["access", "faccessat", "faccessat2", "readlink", "readlinkat", "getdents64", "getcwd"] as const),
  ...(["mremap", "mincore", "brk", "pkey_alloc", "pkey_free", "pkey_mprotect", "membarrier"] as const),
  ...([
    "execve",
    "rseq",
    "set_robust_list",
    "set_tid_address",
    "arch_prctl",
    "sched_yield",
    "sched_getaffinity",
    "sched_getparam",
  ] as const),
  ...([
    "sched_getscheduler",
    "getcpu",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "rt_sigpending",
    "sigaltstack",
  ] as const),
  ...([
    "restart_syscall",
    "kill",
    "tgkill",
    "wait4",
    "exit",
    "exit_group",
    "getpid",
    "getppid",
    "gettid",
    "getpgrp",
    "getpgid",
  ] as const),
  ...([
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "getgroups",
    "getresuid",
    "getresgid",
    "capget",
    "getrusage",
    "uname",
    "sysinfo",
  ] as const),
  // For the switch of user after everything is read; the kernel then refuses them, as the capabilities are gone.
  ...(["setuid", "setgid", "setgroups", "setresuid", "setresgid"] as const),
  ...(["getrandom", "clock_getres", "gettimeofday", "time", "times", "nanosleep", "clock_nanosleep"] as const),
  ...(["epoll_create1", "epoll_pwait2", "poll", "ppoll", "select", "pselect6", "eventfd2", "pipe", "pipe2"] as const),
  ...(["getsockname", "getpeername", "getsockopt", "shutdown"] as const),
];
const FOR_FETCHER: Syscall[] = [
  "connect",
  "bind",
  "sendto",
  "sendmsg",
  "sendmmsg",
  "recvfrom",
  "recvmsg",
  "recvmmsg",
  "setsockopt",
];

/** Fail with ENOSYS: Node and the C library fall back to other calls. */
const UNIMPLEMENTED: Syscall[] = ["clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"];

const FATAL: Syscall[] = [
  ...([
    "unshare",
    "setns",
    "chroot",
    "pivot_root",
    "mount",
    "umount2",
    "open_tree",
    "move_mount",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
  ] as const),
  ...([
    "mount_setattr",
    "open_by_handle_at",
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "pidfd_open",
  ] as const),
  ...([
    "pidfd_getfd",
    "pidfd_send_signal",
    "bpf",
    "userfaultfd",
    "perf_event_open",
    "keyctl",
    "add_key",
    "request_key",
    "init_module",
  ] as const),
  ...([
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    "swapon",
    "swapoff",
    "acct",
  ] as const),
];

const EPERM = 1;
const ENOSYS = 38;
const ALLOW = 0x7fff0000;
const KILL_PROCESS = 0x80000000;
const failWith = (errno: number): number => 0x00050000 + errno;

const AUDIT_ARCHITECTURE: Record<Architecture, number> = { x64: 0xc000003e, arm64: 0xc00000b7 };
/** Set in calls of the x32 ABI, x86-64's 32-bit variant. */
const X32_BIT = 0x40000000;

const LOAD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_AT_LEAST = 0x35;
const JUMP_IF_ANY_BIT = 0x45;
const RETURN = 0x06;

const NUMBER_AT = 0;
const ARCHITECTURE_AT = 4;
/** Offset of the lower or upper half of an argument, on a little-endian machine. */
const argument = (index: number, half: "low" | "high" = "low"): number => 16 + index * 8 + (half === "high" ? 4 : 0);

type Instruction = [code: number, ifTrue: number, ifFalse: number, value: number];
const load = (offset: number): Instruction => [LOAD, 0, 0, offset];
const give = (action: number): Instruction => [RETURN, 0, 0, action];

/** Allows the call if the argument has one of these values, else EPERM. */
const oneOf = (index: number, values: number[]): Instruction[] => [
  load(argument(index)),
  ...values.flatMap((value): Instruction[] => [[JUMP_IF_EQUAL, 0, 1, value], give(ALLOW)]),
  give(failWith(EPERM)),
];

const CLONE_THREAD = 0x00010000;
/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const CLONE_NAMESPACES = 0x7e020000;
/** O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND, __O_TMPFILE: the same on both architectures. */
const OPEN_TO_CHANGE = 0x00400000 | 0o1 | 0o2 | 0o100 | 0o1000 | 0o2000;
/** TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX. */
const HARMLESS_IOCTLS = [0x5401, 0x5413, 0x541b, 0x5421, 0x5450, 0x5451];
/** PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_SET_VMA (names of memory areas). */
const HARMLESS_PRCTLS = [15, 16, 3, 0x53564d41];
/** AF_INET, AF_INET6. */
const INTERNET = [2, 10];

const readOnly = (flagsIndex: number): Instruction[] => [
  load(argument(flagsIndex)),
  [JUMP_IF_ANY_BIT, 0, 1, OPEN_TO_CHANGE],
  give(failWith(EPERM)),
  give(ALLOW),
];

/** Calls whose arguments decide. */
const BY_ARGUMENTS: Partial<Record<Syscall, Instruction[]>> = {
  // Threads only: no processes, no namespaces.
  clone: [
    load(argument(0)),
    [JUMP_IF_ANY_BIT, 0, 1, CLONE_NAMESPACES],
    give(KILL_PROCESS),
    [JUMP_IF_ANY_BIT, 1, 0, CLONE_THREAD],
    give(failWith(EPERM)),
    give(ALLOW),
  ],
  open: readOnly(1),
  openat: readOnly(2),
  ioctl: oneOf(1, HARMLESS_IOCTLS),
  prctl: oneOf(0, HARMLESS_PRCTLS),
  // Only to read limits: the pointer to new limits must be null.
  prlimit64: [
    load(argument(2)),
    [JUMP_IF_EQUAL, 0, 3, 0],
    load(argument(2, "high")),
    [JUMP_IF_EQUAL, 0, 1, 0],
    give(ALLOW),
    give(failWith(EPERM)),
  ],
};

/**
 * The filter in the kernel's format: 8 bytes per instruction (u16 code, u8 jump if true, u8 jump if false, u32 value).
 */
export function seccompFilter(name: FilterName, architecture: Architecture): Buffer {
  const allowed = name === "fetcher" ? [...FOR_ALL, ...FOR_FETCHER] : FOR_ALL;
  const special = { ...BY_ARGUMENTS, ...(name === "fetcher" && { socket: oneOf(0, INTERNET) }) };
  const program: Instruction[] = [
    load(ARCHITECTURE_AT),
    [JUMP_IF_EQUAL, 1, 0, AUDIT_ARCHITECTURE[architecture]],
    give(KILL_PROCESS),
    load(NUMBER_AT),
    ...(architecture === "x64" ? ([[JUMP_IF_AT_LEAST, 0, 1, X32_BIT], give(KILL_PROCESS)] as Instruction[]) : []),
    ...allowed.flatMap((call) => when(call, architecture, [give(ALLOW)])),
    ...Object.entries(special).flatMap(([call, then]) => when(call as Syscall, architecture, then)),
    ...UNIMPLEMENTED.flatMap((call) => when(call, architecture, [give(failWith(ENOSYS))])),
    ...FATAL.flatMap((call) => when(call, architecture, [give(KILL_PROCESS)])),
    give(failWith(EPERM)),
  ];
  return Buffer.concat(program.map(encoded));
}

/** Every path through `then` must end in a return: the system call number is not loaded again. */
function when(call: Syscall, architecture: Architecture, then: Instruction[]): Instruction[] {
  const number = SYSCALLS[call][architecture === "x64" ? 0 : 1];
  return number === undefined ? [] : [[JUMP_IF_EQUAL, 0, then.length, number], ...then];
}

function encoded([code, ifTrue, ifFalse, value]: Instruction): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(code, 0);
  bytes.writeUInt8(ifTrue, 2);
  bytes.writeUInt8(ifFalse, 3);
  bytes.writeUInt32LE(value >>> 0, 4);
  return bytes;
}
