/**
 * A development stack under the verifier: everything that needs no hardware root passes, and the verdict is SIMULATED.
 */
import { expect } from "chai";
import { verifyService, type Report, type StepId } from "../../client/verify";
import { useStack } from "../support/stack";

/**
 * What only a real deployment can show: Intel's signature, an expected image, a key management, a TLS endpoint, images of this source.
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
