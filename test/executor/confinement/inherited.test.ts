/** A keyholder started by a shell or a supervisor with open descriptors: nothing that it starts gets them. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect } from "chai";

const INHERITED = join(__dirname, "../../../dist/executor/confinement/inherited.js");
/** Prints the descriptors it would pass on, before and after closing them, and what a program it starts has. */
const PROGRAM = `
  const { passedOn, closePassedOn } = require(${JSON.stringify(INHERITED)});
  const before = passedOn().sort((a, b) => a - b);
  closePassedOn();
  const started = require("child_process").execFileSync("ls", ["/proc/self/fd"], { encoding: "utf8" });
  const has251 = started.split("\\n").includes("251");
  console.log(JSON.stringify({ before, after: passedOn(), has251 }));`;

/** The test itself may have been started with some. */
const NONE = 'for fd in $(ls /proc/$$/fd); do [ $fd -gt 2 ] && [ $fd -ne 255 ] && eval "exec $fd>&-"; done;';

describe("descriptors that a process was started with", () => {
  const printed = (script: string): unknown =>
    JSON.parse(execFileSync("bash", ["-c", script, "", process.execPath, PROGRAM], { encoding: "utf8" }));

  it("are found and closed, and no program gets them", () => {
    expect(printed(`${NONE} exec 40</dev/null 251</etc/passwd; exec "$1" -e "$2"`)).to.deep.equal({
      before: [40, 251],
      after: [],
      has251: false,
    });
  });

  it("are none of the process's own", () => {
    expect(printed(`${NONE} exec "$1" -e "$2"`)).to.deep.equal({ before: [], after: [], has251: false });
  });
});
