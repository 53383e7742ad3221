/**
 * What beside an image decides which code runs: the deployed compose file, rendered or not, against the source's own,
 * with every change that an operator could make to run something else.
 */
import { expect } from "chai";
import { parse, stringify } from "yaml";
import { applicationOf, composeFileOf, imagesOf } from "../../../client/verify/compose";
import { checkServices } from "../../../client/verify/composeServices";
import { Malformed } from "../../../client/verify/types";
import { IMAGE_NAMES } from "../../../scripts/image/build";
import { rendered, SOURCE, withImages } from "../../support/composeFiles";

type Service = Record<string, unknown>;
interface File extends Record<string, unknown> {
  services: Record<string, Service>;
  volumes: Record<string, unknown>;
}

const RENDERED = rendered();
const IMAGE = `r/other@sha256:${"c".repeat(64)}`;
const checked = (compose: string, allowedEnvs: readonly string[] = []): string[] =>
  checkServices({ compose: composeFileOf(compose), allowedEnvs }, SOURCE, IMAGE_NAMES);

describe("a deployed compose file against the source's", () => {
  const deployed = { rendered: RENDERED, "as it is": withImages(SOURCE) };
  for (const [how, text] of Object.entries(deployed)) {
    const changed = (change: (services: File["services"], file: File) => void): string => {
      const file = parse(text, { merge: true }) as File;
      change(file.services, file);
      return stringify(file, { aliasDuplicateObjects: false });
    };

    describe(how, () => {
      it("passes, also after it was parsed and written again, and names the services of others", () => {
        for (const compose of [text, changed(() => undefined)]) {
          expect(checked(compose)).to.deep.equal(["postgres"]);
          expect(imagesOf(composeFileOf(compose)).size).to.equal(4);
        }
      });

      it("passes with other limits, ports and values of the source's variables", () => {
        const compose = changed(({ executor, relayer, ingress }) => {
          Object.assign(executor ?? {}, { mem_limit: "16g", stop_grace_period: "2m", logging: { driver: "local" } });
          Object.assign(executor?.["environment"] ?? {}, { RPC_URLS: "https://a,https://b", LOG_LEVEL: null });
          (executor?.["security_opt"] as string[]).push("apparmor=unconfined");
          Object.assign(relayer ?? {}, { ports: ["127.0.0.1:9000:9464"], restart: "always" });
          Object.assign(ingress?.["environment"] ?? {}, { DOMAIN: "$DOMAIN" });
        });
        expect(checked(compose, ["POSTGRES_PASSWORD", "COMPOSE_PROFILES"])).to.deep.equal(["postgres"]);
      });

      it("passes without PostgreSQL, and with another service that touches nothing", () => {
        const compose = changed((services, { volumes }) => {
          delete services["postgres"];
          volumes["figures"] = volumes["ledger"];
          delete volumes["ledger"];
          const more = { volumes: ["figures:/data"], healthcheck: { test: ["CMD", "x"] }, environment: ["A=b"] };
          services["metrics"] = { image: IMAGE, cap_drop: ["ALL"], tmpfs: "/tmp", ...more };
        });
        expect(checked(compose)).to.deep.equal(["metrics"]);
      });

      const env = (name: string, value: unknown) => (service: Service) =>
        Object.assign(service["environment"] as object, { [name]: value });
      const set = (members: Service) => (service: Service) => Object.assign(service, members);
      const own: readonly (readonly [name: string, change: (service: Service) => unknown])[] = [
        ["executor", env("NODE_OPTIONS", "--import=data:text/javascript,evil()")],
        ["executor", env("NODE_OPTIONS", "${NODE_OPTIONS}")],
        ["executor", env("NODE_OPTIONS", null)],
        ["executor", env("TEE", "none")],
        ["executor", env("TEE", "${RPC_QUORUM}")],
        ["executor", env("TEE", null)],
        ["executor", (service) => delete (service["environment"] as Service)["TEE"]],
        ["executor", env("NODE_ENV", "development")],
        ["executor", env("DSTACK_ENDPOINT", "http://other:1")],
        ["executor", env("DEPLOYMENT_FILE", "/app/deployments/../../evidences/x.json")],
        ["executor", env("DEPLOYMENT_FILE", "/evidences/base.json")],
        ["executor", env("TLS_CERT_FILE", "/var/lib/keywright/x.pem")],
        ["executor", env("ROOT_KEY_FILE", "/evidences/root")],
        ["executor", env("EXECUTOR_SOCKET_GROUP", 0)],
        ["ingress", env("UPSTREAM_URL", "http://other:8000")],
        ["relayer", env("EXECUTOR_SOCKET", "/evidences/executor.sock")],
        ["relayer", env("NODE_EXTRA_CA_CERTS", "/evidences/ca.pem")],
        ["relayer", set({ environment: ["NODE_OPTIONS=--import=/evidences/x.js"] })],
        ["executor", set({ healthcheck: { test: ["CMD", "/usr/bin/node", "-e", "evil()"], interval: "1s" } })],
        ["executor", set({ healthcheck: { disable: true } })],
        ["executor", (service) => delete service["healthcheck"]],
        ["ingress", set({ healthcheck: { test: "true" } })],
        ["executor", (service) => (service["volumes"] as unknown[]).push("/dstack:/app/dist")],
        ["executor", (service) => (service["volumes"] as unknown[]).push("code:/app/dist")],
        ["executor", (service) => (service["volumes"] as unknown[]).pop()],
        ["executor", (service) => (service["volumes"] as unknown[]).splice(2, 1, "/x.sock:/var/run/dstack.sock")],
        ["relayer", set({ volumes: ["socket:/run/keywright", "evidences:/evidences"] })],
        ["relayer", set({ volumes: ["socket:/run/keywright", "evidences:/evidences:ro", "/run/dstack.sock:/d"] })],
        ["relayer", set({ volumes: ["socket:/run/keywright:z", "evidences:/evidences:ro"] })],
        ["relayer", set({ tmpfs: ["/tmp", "/app"] })],
        ["relayer", set({ cap_add: ["SYS_ADMIN"] })],
        ["executor", set({ cap_drop: [] })],
        ["executor", set({ read_only: false })],
        ["executor", set({ security_opt: ["seccomp=unconfined", "no-new-privileges:true"] })],
        ["executor", set({ security_opt: [] })],
        ["executor", set({ profiles: ["never"] })],
      ];
      it("fails with any other variable, mount, check or right of the source's services", () => {
        for (const [name, change] of own) {
          const compose = changed((services) => void change(services[name] ?? {}));
          expect(() => checked(compose), `${name}: ${String(change)}`).to.throw(
            Malformed,
            new RegExp(`"${name}"|volume`),
          );
        }
        expect(() => checked(changed((services) => delete services["ingress"]))).to.throw(Malformed, "no service");
      });

      const others: readonly Service[] = [
        ...["socket", "evidences", "tls", "code"].map((volume) => ({ volumes: [`${volume}:/x:ro`] })),
        { volumes: ["/var/run/dstack.sock:/var/run/dstack.sock"] },
        { volumes: [{ type: "bind", source: "/", target: "/x" }] },
        { volumes: [{ type: "volume", source: "socket", target: "/x", volume: {} }] },
        { volumes: ["undeclared:/x"] },
        { volumes: ["$HOME/x:/x"] },
        { volumes: ["$SERVICE_NAME"] },
        { volumes: ["${SERVICE_NAME}"] },
        { volumes: { a: "/x" } },
        { cap_add: ["NET_ADMIN"] },
        { cap_drop: [] },
        { cap_drop: null },
        { security_opt: ["seccomp=unconfined"] },
      ];
      it("fails with a service of others that reaches into the source's or the machine", () => {
        for (const members of others) {
          const compose = changed((services) => {
            services["other"] = { image: IMAGE, cap_drop: ["ALL"], ...members };
          });
          expect(() => checked(compose), JSON.stringify(members)).to.throw(Malformed);
        }
      });
    });
  }

  it("fails when the operator may give a variable that is a part of a path", () => {
    for (const name of ["NETWORK", "DOMAIN"])
      expect(() => checked(withImages(SOURCE), [name]), name).to.throw(Malformed, `contains ${name}`);
    expect(checked(RENDERED, ["NETWORK", "DOMAIN"])).to.deep.equal(["postgres"]);
    // As docs/operations.md has it: the password of a whole value that the source leaves open.
    const documented = RENDERED.replace("keywright:@postgres", "keywright:${POSTGRES_PASSWORD}@postgres");
    expect(documented).to.not.equal(RENDERED);
    expect(checked(documented, ["POSTGRES_PASSWORD"])).to.deep.equal(["postgres"]);
  });

  it("fails when the operator may give variables that the source's file has not", () => {
    for (const name of ["BASH_ENV", "LD_PRELOAD", "COMPOSE_FILE", "DOCKER_HOST", "PATH", "OTHER"])
      expect(() => checked(RENDERED, [name]), name).to.throw(Malformed, name);
    const app = JSON.stringify({ docker_compose_file: RENDERED, allowed_envs: ["BASH_ENV"] });
    expect(applicationOf(app).allowedEnvs).to.deep.equal(["BASH_ENV"]);
  });
});
