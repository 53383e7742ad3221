/** CPU and memory priority of processes that handle untrusted input, below those that serve all accounts. */
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";

export interface Priority {
  /** 0 is the keyholder's; 19 yields to all others. */
  readonly niceness: number;
  /** When memory runs out the kernel ends processes with a high score first; at most 1000. */
  readonly outOfMemoryScore: number;
}

/** For processes that run code of guests. */
export const GUEST_PRIORITY: Priority = { niceness: 10, outOfMemoryScore: 1_000 };

/**
 * Sets this process's own score, which everything it starts inherits. Setting a program's score after its start may be
 * too late: it may have changed its user, and root without capabilities, as in a container, may not set it any more.
 */
export function setOwnOutOfMemoryScore(score: number): void {
  tolerate(() => writeFileSync("/proc/self/oom_score_adj", String(score)));
}

/**
 * Applies to a process and everything it starts from now on. With the kernel's autogroup scheduling, niceness only
 * counts within a session, so the session gets one as well. Set when the outermost wrapper starts, so that even its
 * start yields to others, and again when the program is ready, which may have been started before the first call.
 */
export function setPriorities(pid: number | undefined, { niceness, outOfMemoryScore }: Priority): void {
  if (pid === undefined) return;
  const session = `/proc/${pid}/autogroup`;
  tolerate(() => writeFileSync(`/proc/${pid}/oom_score_adj`, String(outOfMemoryScore)));
  tolerate(() => {
    if (existsSync(session)) writeFileSync(session, String(niceness));
  });
  // Linux has one niceness per thread. Refused where the process has another user already and root may not set it.
  tolerate(() => {
    for (const thread of readdirSync(`/proc/${pid}/task`)) setPriority(Number(thread), niceness);
  });
}

/** Each step on its own: the process may have exited, which is reported elsewhere; the self-test reports the rest. */
function tolerate(step: () => void): void {
  try {
    step();
  } catch {
    // Reported by the self-test.
  }
}
