/**
 * The container's healthcheck: exits with 0 when the executor reports that it is ready. Ends an executor that does not
 * answer, so that the container's restart policy starts it again. The executor's own watchdog ends it when its event
 * loop is blocked, but does not run when the whole process is stopped.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isSilent, statusOf } from "./alive";

const TIMEOUT_MS = 4_000;

async function main(socketPath: string): Promise<number> {
  const status = await statusOf(socketPath, "POST", TIMEOUT_MS).catch(() => 0);
  if (status === undefined && (await isSilent(socketPath))) endKeyholder();
  return status === 200 ? 0 : 1;
}

/** The keyholder process, found by the folder it was started from: the one above this. */
function endKeyholder(): void {
  const program = join(dirname(process.argv[1] ?? ""), "..", "main.js");
  for (const pid of readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name))) {
    if (!argumentsOf(pid).includes(program)) continue;
    process.stderr.write("the keyholder does not answer; ending it\n");
    process.kill(Number(pid), "SIGKILL");
  }
}

function argumentsOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return [];
  }
}

const socketPath = process.argv[2];
if (socketPath === undefined) {
  process.stderr.write("usage: healthcheck.js <the executor's socket>\n");
  process.exit(2);
}
void main(socketPath).then((code) => process.exit(code));
