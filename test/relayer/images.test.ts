/** The compose file and its settings: every image is named by digest, and no service has more rights than it needs. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { parse } from "yaml";
import { EXECUTOR_VARIABLES } from "../../executor/config";
import { INGRESS_VARIABLES } from "../../ingress/config";
import { RELAYER_VARIABLES } from "../../relayer/config";
import { withSettings } from "../../scripts/operator/settingsTable";
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
  profiles?: string[];
  depends_on?: Record<string, object>;
  cap_drop?: string[];
  cap_add?: string[];
  volumes: string[];
  ports?: string[];
  stop_grace_period?: string;
  environment: Record<string, string>;
}
const services = (parse(read("compose.yaml"), { merge: true }) as { services: Record<string, Service> }).services;

describe("images", () => {
  describe("settings", () => {
    /** Development-only settings, and those set by the image or the file itself. */
    const LEFT_OUT = {
      executor: [
        "CHAIN_ID",
        "CONTRACT_ADDRESS",
        "ROOT_KEY_FILE",
        "FETCH_ALLOW_HOSTS",
        "WEBHOOK_ALLOW_HOSTS",
        "FETCHER_UID",
        "SANDBOX_FIRST_UID",
      ],
      relayer: ["CHAIN_ID", "CONTRACT_ADDRESS", "DATA_DIR", "STRIPE_API_BASE", "PORT", "METRICS_PORT"],
      ingress: [] as string[],
    };
    for (const [name, variables] of Object.entries({
      executor: EXECUTOR_VARIABLES,
      relayer: RELAYER_VARIABLES,
      ingress: INGRESS_VARIABLES,
    }) as [keyof typeof LEFT_OUT, object][]) {
      it(`of the ${name} are all in the compose file, and no others`, () => {
        const expected = Object.keys(variables).filter((variable) => !LEFT_OUT[name].includes(variable));
        expect(Object.keys(services[name]?.environment ?? {}).sort()).to.deep.equal(expected.sort());
      });
    }

    it("are all in docs/operations.md as in the code (else: node dist/scripts/operator/settingsTable.js)", () => {
      const page = read("docs/operations.md");
      expect(page).to.equal(withSettings(page));
      for (const name of [EXECUTOR_VARIABLES, RELAYER_VARIABLES, INGRESS_VARIABLES].flatMap((variables) =>
        Object.keys(variables),
      ))
        expect(page).to.contain(`| \`${name}\` |`);
    });
  });

  describe("compose file", () => {
    it("requires every image by digest and has no default for any", () => {
      for (const { image } of Object.values(services)) expect(image).to.match(/^\$\{\w+:\?\S+@sha256:…\}$/);
    });

    it("requires every secret and contains none", () => {
      expect(services.postgres?.environment.POSTGRES_PASSWORD).to.match(/^\$\{POSTGRES_PASSWORD:\?/);
      expect(services.relayer?.environment.STRIPE_SECRET_KEY).to.equal("${STRIPE_SECRET_KEY:-}");
    });

    it(
      "is the same on each of several machines: the database only where its profile is " +
        "on, otherwise at DATABASE_URL",
      () => {
        expect(services.postgres?.profiles).to.deep.equal(["database"]);
        expect(
          Object.entries(services).filter(([name, { profiles }]) => name !== "postgres" && profiles !== undefined),
        ).to.deep.equal([]);
        expect(services.relayer?.depends_on?.postgres).to.deep.equal({ condition: "service_healthy", required: false });
        expect(services.relayer?.environment.DATABASE_URL).to.match(/^\$\{DATABASE_URL:-postgresql:/);
        expect(services.ingress?.environment.PROXY_PROTOCOL).to.equal("${PROXY_PROTOCOL:-}");
      },
    );

    it("stops the relayer before the ingress, and gives both the time that requests under way may take", () => {
      expect(services.relayer?.depends_on).to.have.property("ingress");
      expect(services.ingress?.depends_on).not.to.have.property("relayer");
      const seconds = (name: string): number => Number.parseInt(services[name]?.stop_grace_period ?? "", 10);
      // Notice and draining take 40 s in the relayer, draining 45 in the ingress.
      for (const name of ["relayer", "ingress"]) expect(seconds(name), name).to.be.at.least(60);
    });

    it("gives no service more rights than it needs", () => {
      for (const [name, service] of Object.entries(services)) {
        expect(service, name).to.include({ read_only: true });
        expect(service.security_opt, name).to.include("no-new-privileges:true");
        expect(service.privileged ?? false, name).to.equal(false);
        expect(service.network_mode, name).to.equal(undefined);
        expect(
          service.volumes.filter((volume) => volume.includes("docker.sock")),
          name,
        ).to.deep.equal([]);
        if (name !== "ingress") for (const port of service.ports ?? []) expect(port, name).to.match(/^127\.0\.0\.1:/);
      }
      for (const name of ["relayer", "ingress"]) expect(services[name]?.cap_add, name).to.equal(undefined);
      expect(services.relayer?.cap_drop).to.deep.equal(["ALL"]);
    });

    it("lets only the services of this repository access the socket, and only the executor the TEE", () => {
      const holders = (part: string): string[] =>
        Object.keys(services).filter((name) => services[name]?.volumes.some((volume) => volume.startsWith(part)));
      expect(holders("socket:")).to.deep.equal(["executor", "relayer", "ingress"]);
      expect(holders("/var/run/dstack.sock")).to.deep.equal(["executor"]);
      expect(services.executor?.environment.EXECUTOR_SOCKET).to.equal(services.relayer?.environment.EXECUTOR_SOCKET);
    });
  });

  describe("check of a rendered compose file", () => {
    const rendered = (image: string): string => `services:\n  relayer:\n    image: ${image}\n`;
    it("accepts a digest", () => {
      expect(unpinnedImages(rendered(`example/keywright${DIGEST}`))).to.deep.equal([]);
    });
    for (const image of [
      "example/keywright",
      "example/keywright:1.0",
      "example/keywright@sha256:abc",
      `example/keywright${DIGEST}0`,
      "'${RELAYER_IMAGE}'",
    ]) {
      it(`refuses ${image}`, () => {
        expect(unpinnedImages(rendered(image))).to.have.length(1);
      });
    }
    it("refuses an image built in place", () => {
      expect(unpinnedImages("services:\n  relayer:\n    build: .\n")).to.have.length(1);
    });
  });
});
