/** The lowest priority for processes that run untrusted code. */
import { existsSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";

const NICENESS = 10;
/** When memory runs out the kernel ends these before all other processes. */
const OUT_OF_MEMORY_SCORE = "1000";

/**
 * Gives a process that has just started, and all that it starts, the lowest priority for CPU and memory: neither its
 * start nor its loops slow the processes that serve all. Its niceness alone is not enough: where the kernel shares the
 * CPU out by session, its session needs one, too.
 */
export function putLast(pid: number | undefined): void {
  if (pid === undefined) return;
  const session = `/proc/${pid}/autogroup`;
  try {
    setPriority(pid, NICENESS);
    writeFileSync(`/proc/${pid}/oom_score_adj`, OUT_OF_MEMORY_SCORE);
    if (existsSync(session)) writeFileSync(session, String(NICENESS));
  } catch {
    // It has ended already, and its exit tells more; or this is not Linux, which the self-test says.
  }
}
