/**
 * Descriptors that a process was started with, such as those of a shell or a supervisor. Whatever they refer to, a
 * program started by this process would get them, too.
 */
import { closeSync, readFileSync, readdirSync } from "node:fs";

/** Node marks those up to this number as not to be passed on, but stops at the first gap beyond it. */
const MARKED_BY_NODE = 15;
const CLOSE_ON_EXEC = 0o2000000;

/** The open descriptors that a program started by this process would have. */
export function passedOn(): number[] {
  return readdirSync("/proc/self/fd")
    .map(Number)
    .filter((fd) => fd > MARKED_BY_NODE && isPassedOn(fd));
}

/** Closes them; this process uses none of them. */
export function closePassedOn(): void {
  for (const fd of passedOn()) closeSync(fd);
}

function isPassedOn(fd: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "latin1"))?.[1] ?? "0";
    return (parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    // The descriptor of the folder itself, closed by now.
    return false;
  }
}
