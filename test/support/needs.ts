/**
 * What some tests need beyond npm packages: the only reasons for which a test may be left out (a lint rule forbids
 * others). Where KEYWRIGHT_REQUIRED is set, as in CI, nothing is left out: the test fails. `scripts/test.mjs` reports
 * what was.
 */
import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { detectConfinement } from "../../executor/confinement/confine";

const ROOT = join(__dirname, "..", "..");

interface Requirement {
  readonly isMet: () => boolean | Promise<boolean>;
  /** Completes "8 tests need …". */
  readonly need: string;
}

const REQUIREMENTS = {
  // Without it children can make any system call, and see the keyholder's processes.
  bubblewrap: {
    isMet: async () => (await detectConfinement()) === undefined,
    need: "bubblewrap: apt-get install bubblewrap",
  },
  // Only root can give each process a user of its own.
  root: { isMet: () => process.getuid?.() === 0, need: "root: run npm test as root" },
  // Makes the root file system of an emptied machine.
  debootstrap: {
    isMet: () => spawnSync("debootstrap", ["--version"]).status === 0,
    need: "debootstrap: apt-get install debootstrap",
  },
  // The README's commands use it.
  curl: { isMet: () => spawnSync("curl", ["--version"]).status === 0, need: "curl: apt-get install curl" },
  // The page on verifying clones the repository.
  git: { isMet: () => spawnSync("git", ["--version"]).status === 0, need: "git: apt-get install git" },
  // It clones the one that the tests are in, which sources from a tarball are not.
  clone: {
    isMet: () => spawnSync("git", ["-C", ROOT, "rev-parse", "HEAD"]).status === 0 && existsSync(join(ROOT, ".git")),
    need: "a clone of the repository: git clone",
  },
  // The page for Python is run.
  python3: { isMet: () => spawnSync("python3", ["--version"]).status === 0, need: "python3: apt-get install python3" },
  // The page for Go is run, in deep runs.
  go: { isMet: () => spawnSync("go", ["version"]).status === 0, need: "Go: apt-get install golang-go" },
} satisfies Record<string, Requirement>;

/** Leaves the test out if something is missing. */
export async function needs(test: Mocha.Context, ...names: (keyof typeof REQUIREMENTS)[]): Promise<void> {
  for (const name of names) {
    const { isMet, need } = REQUIREMENTS[name];
    if (await isMet()) continue;
    if (process.env.KEYWRIGHT_REQUIRED) throw new Error(`this test must run here and needs ${need}`);
    const report = process.env.KEYWRIGHT_LEFT_OUT;
    if (report) appendFileSync(report, `${need}\n`);
    test.skip();
  }
}
