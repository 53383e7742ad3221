/** What a command needs beyond npm's packages is named in a sentence at its start. */
import { expect } from "chai";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(__dirname, "..", "..");

describe("a program that is missing", () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "few-programs-"))));
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Runs Node where no other programs are found than those in the folder. */
  function node(...args: string[]): { status: number | null; stdout: string; stderr: string } {
    return spawnSync(process.execPath, args, { cwd: ROOT, env: { PATH: folder, HOME: folder }, encoding: "utf8" });
  }
  const script = (name: string): string => join(ROOT, "dist", "scripts", name);

  it("is named by npm run verify with --source, which is no wrong use", () => {
    symlinkSync("/bin/tar", join(folder, "tar"));
    const { status, stderr } = node(script("verify.js"), "http://127.0.0.1:1", "--source", ROOT);
    expect(stderr).to.equal("building images needs git, dpkg-deb (Debian's packages: git, dpkg)\n");
    expect(status).to.equal(5);
  });

  it("is named by npm run image", () => {
    const { status, stderr } = node(script("image.js"), "--output", folder);
    expect(stderr).to.equal("building images needs git, tar, dpkg-deb (Debian's packages: git, tar, dpkg)\n");
    expect(status).to.equal(1);
  });

  it("is named by npm run image with --update-packages", () => {
    const { status, stderr } = node(script("image.js"), "--update-packages");
    expect(stderr).to.equal("locking Debian's packages needs apt-cache (Debian's packages: apt)\n");
    expect(status).to.equal(1);
  });

  describe("where secp256k1 has to be compiled", () => {
    const arm64 = 'data:text/javascript,Object.defineProperty(process,"arch",{value:"arm64"})';
    const setUp = () => node("--import", arm64, join(ROOT, "scripts", "setup.mjs"));
    const program = (name: string): void => {
      writeFileSync(join(folder, name), "#!/bin/sh\n");
      chmodSync(join(folder, name), 0o755);
    };

    it("is named by the set-up", () => {
      program("python3");
      const { status, stdout, stderr } = setUp();
      expect(stderr).to.equal(
        `On ${process.platform}-arm64 secp256k1 is compiled, which needs make, c++: apt-get install make g++\n`,
      );
      expect([status, stdout]).to.deep.equal([1, ""]);
    });

    it("ends the set-up, as does a compiler that fails", () => {
      for (const name of ["python3", "make", "c++", "npm"]) program(name);
      const { status, stdout, stderr } = setUp();
      expect(stderr).to.match(/secp256k1 could not be compiled: the compiler's messages say why\n$/);
      expect([status, stdout]).to.deep.equal([1, ""]);
    });
  });
});
