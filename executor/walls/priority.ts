/** How processes that handle untrusted input share CPU and memory with those that serve all. */
import { existsSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";

export interface Priority {
  /** 0 is the keyholder's; 19 yields to all others. */
  readonly niceness: number;
  /** When memory runs out the kernel ends processes with a high score first; at most 1000. */
  readonly outOfMemoryScore: number;
}

/** For processes that run code of guests. */
export const LAST: Priority = { niceness: 10, outOfMemoryScore: 1_000 };

/**
 * For a process that has just started, and all that it starts: neither its start nor its loops slow others. Its niceness
 * alone is not enough: where the kernel shares the CPU out by session, its session needs one, too.
 */
export function setPriorities(pid: number | undefined, { niceness, outOfMemoryScore }: Priority): void {
  if (pid === undefined) return;
  const session = `/proc/${pid}/autogroup`;
  try {
    setPriority(pid, niceness);
    writeFileSync(`/proc/${pid}/oom_score_adj`, String(outOfMemoryScore));
    if (existsSync(session)) writeFileSync(session, String(niceness));
  } catch {
    // It has ended already, and its exit tells more; or this is not Linux, which the self-test says.
  }
}
