/** The README's two commands on a machine that has only Debian's base, Node and npm: in the deep run alone. */
import { expect } from "chai";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { deep } from "../support/counts";
import { needs } from "../support/needs";

const ROOT = join(__dirname, "..", "..");
const START = `npm start > log & for i in $(seq 600); do grep -q "^Ready" log && break; sleep 1; done; cat log`;

if (deep)
  describe("on an emptied machine", function () {
    this.timeout(3_600_000);

    const inside = (user: string, ...command: string[]): { status: number | null; output: string } => {
      const { status, stdout, stderr } = spawnSync("bash", [".ci/emptied", user, ...command], {
        cwd: ROOT,
        encoding: "utf8",
        maxBuffer: 100_000_000,
      });
      return { status, output: stdout + stderr };
    };

    for (const user of ["root", "somebody"]) {
      it(`npm start is ready and npm test green, as ${user}`, async function () {
        await needs(this, "root", "debootstrap");
        const started = inside(user, "sh", "-c", START);
        expect(started.output).to.include("Ready.").and.include("isolation partial: without bubblewrap");
        const tested = inside(user, "npm", "test", "--silent");
        expect(tested.status, tested.output.slice(-20_000)).to.equal(0);
        expect(tested.output).to.match(/Left out: .* bubblewrap: apt-get install bubblewrap/);
      });
    }
  });
