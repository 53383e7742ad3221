/** Dockerfile and compose file: nothing runs that is not named by digest, and nothing has more rights than it needs. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { parse } from "yaml";
import { unpinnedImages } from "../../scripts/operator/compose";

const ROOT = join(__dirname, "..", "..");
const read = (name: string): string => readFileSync(join(ROOT, name), "utf8");
const DIGEST = `@sha256:${"ab".repeat(32)}`;

interface Service {
  image: string;
  read_only: boolean;
  security_opt: string[];
  privileged?: boolean;
  network_mode?: string;
  cap_drop?: string[];
  cap_add?: string[];
  volumes: string[];
  ports?: string[];
  environment: Record<string, string>;
}
const services = (parse(read("compose.yaml"), { merge: true }) as { services: Record<string, Service> }).services;

describe("images", () => {
  describe("Dockerfile", () => {
    const lines = read("Dockerfile").split("\n");
    const stages = new Set(lines.flatMap((line) => /^FROM \S+ AS (\S+)/.exec(line)?.[1] ?? []));

    it("takes every base by digest: written out, or an argument the build checks", () => {
      const bases = lines.flatMap((line) => /^FROM (\S+)/.exec(line)?.[1] ?? []);
      expect(bases.length).to.be.greaterThan(0);
      for (const base of bases.filter((name) => !stages.has(name))) {
        if (/@sha256:[0-9a-f]{64}$/.test(base)) continue;
        const argument = /^\$\{(\w+)\}$/.exec(base)?.[1] ?? expect.fail(`${base} is not pinned`);
        expect(lines, "without a default").to.include(`ARG ${argument}`);
        expect(read("Dockerfile")).to.match(new RegExp(`case "\\$${argument}" in \\*@sha256:\\?{64}\\)`));
      }
    });

    it("adds nothing from the network but Debian's and npm's packages", () => {
      expect(lines.filter((line) => /^ADD |curl|wget|\| *sh\b/.test(line))).to.deep.equal([]);
      expect(lines.filter((line) => line.startsWith("RUN npm")).join()).to.contain("npm ci");
    });

    it("runs the relayer as a user of its own", () => {
      expect(read("Dockerfile")).to.match(/AS relayer\nUSER \d+:\d+/);
    });
  });

  describe("compose file", () => {
    it("demands every image by digest and has no default for any", () => {
      for (const { image } of Object.values(services)) expect(image).to.match(/^\$\{\w+:\?\S+@sha256:…\}$/);
    });

    it("demands every secret and writes none down", () => {
      expect(services.postgres?.environment.POSTGRES_PASSWORD).to.match(/^\$\{POSTGRES_PASSWORD:\?/);
      expect(services.relayer?.environment.STRIPE_SECRET_KEY).to.equal("${STRIPE_SECRET_KEY:-}");
    });

    it("gives no service more than it needs", () => {
      for (const [name, service] of Object.entries(services)) {
        expect(service, name).to.include({ read_only: true });
        expect(service.security_opt, name).to.include("no-new-privileges:true");
        expect(service.privileged ?? false, name).to.equal(false);
        expect(service.network_mode, name).to.equal(undefined);
        expect(
          service.volumes.filter((volume) => volume.includes("docker.sock")),
          name,
        ).to.deep.equal([]);
        for (const port of service.ports ?? []) expect(port, name).to.match(/^127\.0\.0\.1:/);
      }
      expect(services.relayer?.cap_add).to.equal(undefined);
      expect(services.relayer?.cap_drop).to.deep.equal(["ALL"]);
    });

    it("lets only relayer and executor at the socket, and only the executor at the TEE", () => {
      const holders = (part: string): string[] => Object.keys(services).filter((name) => services[name]?.volumes.some((volume) => volume.startsWith(part)));
      expect(holders("socket:")).to.deep.equal(["executor", "relayer"]);
      expect(holders("/var/run/dstack.sock")).to.deep.equal(["executor"]);
      expect(services.executor?.environment.EXECUTOR_SOCKET).to.equal(services.relayer?.environment.EXECUTOR_SOCKET);
    });
  });

  describe("check of a rendered compose file", () => {
    const rendered = (image: string): string => `services:\n  relayer:\n    image: ${image}\n`;
    it("accepts a digest", () => {
      expect(unpinnedImages(rendered(`example/keywright${DIGEST}`))).to.deep.equal([]);
    });
    for (const image of ["example/keywright", "example/keywright:1.0", "example/keywright@sha256:abc", `example/keywright${DIGEST}0`, "'${RELAYER_IMAGE}'"]) {
      it(`refuses ${image}`, () => {
        expect(unpinnedImages(rendered(image))).to.have.length(1);
      });
    }
    it("refuses an image built in place", () => {
      expect(unpinnedImages("services:\n  relayer:\n    build: .\n")).to.have.length(1);
    });
  });
});
