/**
 * A development stack under the verifier: everything that needs no hardware root passes, and the verdict is SIMULATED.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { verifyService, type Report, type StepId } from "../../client/verify";
import { pinnedImages } from "../../client/verify/compose";
import { SOURCE_COMPOSE } from "../support/attestedService";
import { testCli } from "../support/cli";
import { useStack } from "../support/stack";

const ROOT = join(__dirname, "..", "..");

/**
 * What only a real deployment can show: Intel's signature, an expected image, a key management, a TLS endpoint, images
 * of this source.
 */
const NEEDS_A_REAL_ONE: StepId[] = ["signature", "machineImage", "keyProvider", "imageContents", "tlsLeaf"];
/** What the contracts say. */
const NEEDS_THE_CHAIN: StepId[] = ["allowlist", "rootKey"];

describe("verifying a development stack", () => {
  const stack = useStack();
  let report: Report;
  before(async () => {
    report = await verifyService(stack().baseUrl, { rpcUrl: ["http://127.0.0.1:1", stack().rpcUrl] });
  });

  it("says SIMULATED and exits 2", () => {
    expect(report).to.include({ tee: "simulated", outcome: "simulated", exitCode: 2 });
  });

  it("passes every step that a simulated service can pass, and leaves the others unchecked", () => {
    for (const { id, status, detail } of report.steps)
      expect(status, `${id}: ${detail}`).to.equal(NEEDS_A_REAL_ONE.includes(id) ? "not_checked" : "passed");
  });

  it("leaves unchecked what the contracts say when no endpoint is given: this chain has no public ones", async () => {
    const { steps, outcome } = await verifyService(stack().baseUrl);
    for (const { id, status } of steps)
      expect(status, id).to.equal([...NEEDS_A_REAL_ONE, ...NEEDS_THE_CHAIN].includes(id) ? "not_checked" : "passed");
    expect(outcome).to.equal("simulated");
  });

  it("compares the images and how they run with files of a release, by the command line", async () => {
    const cli = testCli();
    const { tcb_info: measured } = (await (await fetch(`${stack().baseUrl}/info`)).json()) as {
      tcb_info: { app_compose: string };
    };
    const digests = [...pinnedImages(measured.app_compose)].map(([name, image]) => [
      name,
      { digest: image.split("@")[1] },
    ]);
    const files = { "digests.json": JSON.stringify(Object.fromEntries(digests)), "compose.yaml": SOURCE_COMPOSE };
    for (const [name, text] of Object.entries({ ...files, "no.json": "{}" })) writeFileSync(join(cli.cwd, name), text);
    const verify = `--url ${stack().baseUrl} --json verify --images`;
    const checked = await cli.run(`${verify} digests.json --compose compose.yaml`);
    expect(checked.code, checked.out + checked.err).to.equal(2);
    const { steps } = checked.json() as unknown as Report;
    expect(steps.find(({ id }) => id === "imageContents")).to.include({ status: "passed" });
    expect((await cli.run(`${verify} ${join(ROOT, "image/digests.json")} --compose compose.yaml`)).code).to.equal(1);
    expect((await cli.run(`${verify} no.json`)).err).to.contain("does not name the digest of each image");
    cli.remove();
  });

  it("shows what the executor checked at its start", async () => {
    const info = (await (await fetch(`${stack().baseUrl}/info`)).json()) as {
      config: Record<string, never>;
      sandbox: { level: string };
    };
    const chain = (await (await fetch(`${stack().baseUrl}/core/v1/get_node_chain_config`)).json()) as {
      chain_id: number;
      key_namespace: string;
    };
    expect(info.config).to.include({
      contract_address: stack().contractAddress,
      chain_id: chain.chain_id,
      key_namespace: chain.key_namespace,
    });
    expect(info.config).to.have.nested.property("budgets.lease_confirmations", 1);
    expect(info.config).to.have.nested.property("rpc.max_head_age_seconds");
    expect(info.config).to.have.nested.property("sandbox.level", info.sandbox.level);
  });

  it("lists the evidence files with their checksums", async () => {
    const listing = await (await fetch(`${stack().baseUrl}/evidences/`)).text();
    for (const name of ["cert-localhost.pem", "acme-account.json", "sha256sum.txt", "quote.json"])
      expect(listing).to.contain(`href="${name}"`);
  });
});
