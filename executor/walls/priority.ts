/** How processes that handle untrusted input share CPU and memory with those that serve all. */
import { existsSync, readdirSync, writeFileSync } from "node:fs";
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
 * For a process, and all that it starts from now on. Its niceness alone is not enough: where the kernel shares the CPU
 * out by session, its session needs one, too. Done when the outermost wrapper starts, so that not even the start slows
 * others, and again when the program is ready, which may have been started before the first time.
 */
export function setPriorities(pid: number | undefined, { niceness, outOfMemoryScore }: Priority): void {
  if (pid === undefined) return;
  const session = `/proc/${pid}/autogroup`;
  try {
    // Linux has one niceness per thread.
    for (const thread of readdirSync(`/proc/${pid}/task`)) setPriority(Number(thread), niceness);
    writeFileSync(`/proc/${pid}/oom_score_adj`, String(outOfMemoryScore));
    if (existsSync(session)) writeFileSync(session, String(niceness));
  } catch {
    // It has ended already, and its exit tells more; or this is not Linux, which the self-test says.
  }
}
