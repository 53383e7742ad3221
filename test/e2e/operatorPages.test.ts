/**
 * The commands of docs/operations.md and docs/verify.md: each is run unchanged with its placeholders filled in, or
 * listed here with what it needs that this test lacks.
 */
import { expect } from "chai";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Wallet } from "ethers";
import { DEVELOPMENT_DEPLOYER_KEY, startChain, type DevelopmentChain } from "../../scripts/dev/chain";
import { freePort } from "../../scripts/dev/ports";
import { compileCache } from "../../scripts/dev/processes";
import { bash, commandsOf, npmIn } from "../support/bash";
import { rendered } from "../support/composeFiles";
import { needs } from "../support/needs";
import { useStack } from "../support/stack";

const ROOT = join(__dirname, "..", "..");
const page = (name: string): string => readFileSync(join(ROOT, "docs", name), "utf8");

/** The lines of a page's blocks without their comments, then the commands in its sentences that have placeholders. */
function commandsIn(text: string): string[] {
  const lines = commandsOf(text)
    .flatMap((block) => block.split("\n"))
    .map((line) => line.replace(/(^|\s+)#.*$/, "").trim())
    .filter((line) => line !== "");
  const inline = [...text.matchAll(/`(npm run (?:operator|deploy|verify) -- [^`<]+[^`]*)`/g)].map(
    ([, command = ""]) => command,
  );
  return [...new Set([...lines, ...inline])];
}

const NO_DOCKER = "needs Docker and the images of a release";
const ELSEWHERE_URL = "postgresql://keywright:$POSTGRES_PASSWORD@db.example.com:5432/keywright?sslmode=verify-full";
const HERE_URL = "postgresql://keywright:$POSTGRES_PASSWORD@postgres:5432/keywright";
/** Commands that are not run here, with the reason. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  "npm run image": "takes minutes and Debian's dpkg-deb: test/system/image.test.ts builds what it builds",
  "npm run image -- --check": "compares what the former builds with the committed digests: .ci/run",
  "npm run image -- --update-packages": "asks Debian's archive and changes committed files",
  "skopeo copy oci:dist/image/relayer:latest docker://<registry>/keywright-relayer": "needs a registry",
  "COMPOSE_PROFILES=database docker compose config > rendered.yaml": `${NO_DOCKER}; the file is rendered by this test`,
  "export PROMETHEUS_IMAGE=prom/prometheus@sha256:… GRAFANA_IMAGE=grafana/grafana@sha256:… GRAFANA_PASSWORD=…":
    "names images of a registry",
  "docker compose -f monitoring/compose.yaml up -d": `${NO_DOCKER}; its files are checked by test/monitoring`,
  "PROXY_PROTOCOL=true": "a setting of the machines: test/system/machines.test.ts",
  "ADDRESS_HASH_KEY=…": "a setting of the machines: test/system/machines.test.ts",
  "MAX_GAS_WEI_PER_HOUR=5000000000000000000": "a setting of the machines: test/system/machines.test.ts",
  [`COMPOSE_PROFILES=database DATABASE_URL="${HERE_URL}" docker compose -f rendered.yaml -f database-port.yaml up -d`]:
    NO_DOCKER,
  [`DATABASE_URL="${ELSEWHERE_URL}" docker compose -f rendered.yaml up -d`]: NO_DOCKER,
  "npm run operator -- stuck": "needs PostgreSQL: test/system/operator.test.ts",
  "npm run operator -- allow-image <compose hash>": "test/e2e/operator.test.ts, with the two that follow",
  "npm run operator -- allowlist": "test/e2e/operator.test.ts",
  "npm run operator -- revoke-image <compose hash>": "test/e2e/operator.test.ts",
  "npm run operator -- rewind <block> <hash>": "needs PostgreSQL: test/system/operator.test.ts",
  "npm run operator -- correct <account> <cents> <reference>": "needs PostgreSQL: test/system/operator.test.ts",
};

const NETWORK = "npm run deploy -- --network base --rpc <url> --admin <address>";
const DEPLOY_LIST = `${NETWORK} --allowlist-only --compose-hash <hash>`;
const DEPLOY_CONTRACT = `${NETWORK} --allowlist <address> --root-commitment <commitment>`;
const HASH = `0x${"3c".repeat(32)}`;

describe("the commands for operators and auditors", function () {
  this.timeout(120_000);
  const stack = useStack();
  const admin = Wallet.createRandom().address;
  let folder: string;
  let base: DevelopmentChain;
  let allowlist = "";

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "operator-pages-"));
    base = await startChain({ port: await freePort(), chainId: 8453n });
    npmIn(folder);
    writeFileSync(join(folder, "rendered.yaml"), rendered());
  });
  after(async () => {
    await base?.process.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const shell = (command: string): Promise<{ code: number | null; text: string }> =>
    bash(command, folder, {
      PATH: `${join(folder, "bin")}:${process.env["PATH"]}`,
      HOME: folder,
      ...compileCache(),
      RPC_URLS: stack().rpcUrl,
      CONTRACT_ADDRESS: stack().contractAddress,
      EXECUTOR_SOCKET: stack().executorSocket,
    });

  /** Commands that are run here: the values of the placeholders, the exit code, the output. */
  const here: Readonly<Record<string, () => Promise<void>>> = {
    "npm run operator -- check-compose rendered.yaml": async () => {
      const { code, text } = await shell("npm run operator -- check-compose rendered.yaml");
      expect([code, text.trim()]).to.deep.equal([
        0,
        "Every image is pinned by digest, and relayer, executor and ingress run as compose.yaml has it.",
      ]);
    },
    [DEPLOY_LIST]: async () => {
      const command = DEPLOY_LIST.replace("<url>", base.rpcUrl).replace("<address>", admin);
      const { code, text } = await shell(`${command.replace("<hash>", HASH)} <<< ${DEVELOPMENT_DEPLOYER_KEY}`);
      expect(code, text).to.equal(0);
      allowlist = /ApplicationAllowlist (0x[0-9a-fA-F]{40})/.exec(text)?.[1] ?? "";
    },
    [DEPLOY_CONTRACT]: async () => {
      const command = DEPLOY_CONTRACT.replace("<url>", base.rpcUrl)
        .replace("<address>", admin)
        .replace("<address>", allowlist)
        .replace("<commitment>", HASH);
      const { code, text } = await shell(`${command} --out base.json <<< ${DEVELOPMENT_DEPLOYER_KEY}`);
      expect(code, text).to.equal(0);
      const made = JSON.parse(readFileSync(join(folder, "base.json"), "utf8")) as Record<string, unknown>;
      expect(made).to.include({ network: "base", chainId: "8453" });
    },
    "npm run operator -- register-payers 4": async () => {
      const { code, text } = await shell("npm run operator -- register-payers 4");
      expect(code, text).to.equal(0);
    },
    "npm run operator -- payers 4": async () => {
      const { code, text } = await shell("npm run operator -- payers 4");
      expect(code, text).to.equal(0);
      expect(text).to.match(/^0 +0x[0-9a-fA-F]{40} +\S+ +admin payer$/m);
    },
    "npm run operator -- payers": async () => {
      const { code, text } = await shell("npm run operator -- payers");
      expect(code, text).to.equal(0);
      expect(text.match(/ registered$/gm)?.length).to.be.greaterThan(0);
    },
  };

  for (const [command, run] of Object.entries(here)) it(command, run);

  it("docs/operations.md shows these, those listed with a reason, and no others", () => {
    expect(commandsIn(page("operations.md")).sort()).to.deep.equal(
      [...Object.keys(here), ...Object.keys(ELSEWHERE)].sort(),
    );
  });

  it("docs/verify.md: clones a release and verifies a service, as far as a simulated one can be", async function () {
    await needs(this, "git", "clone");
    const { tcb_info: measured } = (await (await fetch(`${stack().baseUrl}/info`)).json()) as {
      tcb_info: Record<string, string>;
    };
    writeFileSync(join(folder, "image.json"), JSON.stringify(measured));
    // A development stack has no images built from source: that step is left out.
    const script = commandsOf(page("verify.md"))
      .join("\n")
      .replace("<the repository>", ROOT)
      .replace("<the release>", execFileSync("git", ["rev-parse", "HEAD"], { cwd: ROOT, encoding: "utf8" }).trim())
      .replace("https://keys.example", stack().baseUrl)
      .replace(" --source .", "")
      .replace("https://your-own-rpc", stack().rpcUrl)
      .replaceAll("<its key management>", "3059")
      .replace("image.json", join(folder, "image.json"));
    expect(script).to.include("git clone").and.include("npm run verify").and.not.include("<");
    const { code, text } = await shell(script);
    // Nothing fails, and the service is not what a hardware key vouches for.
    expect(code, text).to.equal(2);
    expect(text).not.to.match(/^✗ FAILED/m);
    for (const step of [
      "Allow-list contract",
      "Root key",
      "Machine image",
      "Freshness",
      "Config document",
      "Compose hash",
      "Evidence files",
    ])
      expect(text).to.match(new RegExp(`^✓ passed +${step}`, "m"));
  });
});
