/** A child yields the CPU to the processes that serve all accounts, also with autogroup scheduling. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { getPriority } from "node:os";
import { expect } from "chai";
import { GUEST_PRIORITY, setPriorities } from "../../../executor/confinement/priority";

describe("a child's priority", () => {
  it("is low for the process and for its session", async function () {
    const child = spawn("sleep", ["30"], { detached: true, stdio: "ignore" });
    await once(child, "spawn");
    const { pid = 0 } = child;
    try {
      setPriorities(pid, GUEST_PRIORITY);
      expect(getPriority(pid)).to.equal(10);
      const group = `/proc/${pid}/autogroup`;
      if (existsSync(group)) expect(readFileSync(group, "utf8")).to.match(/ nice 10$/m);
    } finally {
      child.kill("SIGKILL");
    }
  });
});
