/** The verifier reads the delay before new payers act from the contract on a real node, and warns when it is 0. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect } from "chai";
import { verifyService, type Report } from "../../../client/verify";
import { CONTRACT, giveContract, startAttestedService, type AttestedService } from "../../support/attestedService";
import { startTestChain, type TestChain } from "../../support/chain";

const PROGRAM = join(__dirname, "../../../dist/scripts/verify.js");
const WEEK = 7 * 86_400;

describe("the payer delay in the verifier", function () {
  this.timeout(60_000);
  let chain: TestChain;
  let service: AttestedService;

  const give = (payerDelaySeconds: number): Promise<void> => giveContract(chain, { payerDelaySeconds });

  const verify = (rpcUrl?: string): Promise<Report> =>
    verifyService(service.baseUrl, rpcUrl === undefined ? {} : { rpcUrl });

  before(async () => {
    chain = await startTestChain();
    service = await startAttestedService({ says: "simulated", secure: false });
  });
  after(async () => {
    await service?.stop();
    await chain?.stop();
  });

  it("of 0 is a warning in the report and on the terminal, and fails no step", async () => {
    await give(0);
    const report = await verify(chain.rpcUrl);
    expect(report.warnings).to.have.length(1);
    expect(report.warnings[0]).to.contain("payer delay 0");
    // This chain has no allow-list; nothing else fails.
    expect(report.steps.filter(({ status }) => status === "failed").map(({ id }) => id)).to.deep.equal(["allowlist"]);
    const child = spawn(process.execPath, [PROGRAM, service.baseUrl, "--rpc", chain.rpcUrl], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    let out = "";
    child.stdout.on("data", (chunk) => (out += String(chunk)));
    const [code] = (await once(child, "close")) as [number];
    expect(out).to.contain("WARNING: payer delay 0");
    expect(code).to.equal(report.exitCode);
  });

  it("of a week is a note", async () => {
    await give(WEEK);
    const report = await verify(chain.rpcUrl);
    expect(report.warnings).to.deep.equal([]);
    expect(report.notes.join("\n")).to.contain(`waits ${WEEK} s`);
  });

  it("is reported as not checked without an endpoint, without its answer, and without a contract", async () => {
    await chain.provider.send("anvil_setCode", [CONTRACT, "0x"]);
    for (const rpcUrl of [undefined, "http://127.0.0.1:1", chain.rpcUrl]) {
      const { notes, warnings } = await verify(rpcUrl);
      expect(notes.join("\n"), String(rpcUrl)).to.contain("how long an added payer waits: not checked");
      expect(warnings).to.deep.equal([]);
    }
  });
});
