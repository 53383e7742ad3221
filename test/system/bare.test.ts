/** The environment in which CI runs `npm test` first: a program that a machine may lack cannot be found there. */
import { expect } from "chai";
import { spawnSync } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { needs } from "../support/needs";

const ROOT = join(__dirname, "..", "..");
const FOLDERS = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/lib/git-core"];
const PROGRAMS = ["bwrap", "chromium", "crun", "curl", "debootstrap", "git", "git-remote-http", "python3", "umoci"];
/** Programs in /opt and in the home folder, too. */
const ELSEWHERE = `mount -t tmpfs tmpfs /opt && mount -t tmpfs tmpfs /srv && mkdir -p /opt/tool/bin /srv/home/.tool/bin
  for place in /opt/tool/bin /srv/home/.tool/bin; do cp /bin/true $place/tool; done
  HOME=/srv/home exec bash .ci/bare "$@"`;
const LOOK = 'for path; do [ ! -e "$path" ] || echo "$path"; done; node --version && npm --version >/dev/null && pwd';

describe(".ci/bare", function () {
  this.timeout(60_000);

  it("hides the programs of other packages and places, and shows Node, npm and the working folder", async function () {
    await needs(this, "root");
    const there = FOLDERS.flatMap((folder) => PROGRAMS.map((name) => join(folder, name)))
      .filter((path) => existsSync(path))
      .map((path) => realpathSync(path));
    expect(there.length).to.be.greaterThan(PROGRAMS.length / 2);
    const hidden = [...there, "/opt/tool/bin/tool", "/srv/home/.tool/bin/tool"];
    const command = [ELSEWHERE, "bash", "sh", "-c", LOOK, "sh", ...hidden];
    const { stdout, stderr } = spawnSync("unshare", ["--mount", "--propagation", "private", "bash", "-c", ...command], {
      cwd: ROOT,
      encoding: "utf8",
    });
    expect(stdout, stderr).to.equal(`${process.version}\n${ROOT}\n`);
  });
});
