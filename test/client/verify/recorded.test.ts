/** Evidence from a file: what it vouches for, and what whoever kept it could have changed. */
import { expect } from "chai";
import { recordService, verifyEvidence, type Recording, type Report, type VerifyOptions } from "../../../client/verify";
import { textOf } from "../../../client/cli/verify";
import { ClientError } from "../../../client/errors";
import { CONTRACT, startAttestedService, type AttestedService } from "../../support/attestedService";
import { editJson, flipHexByte } from "../../support/verification";

describe("recorded evidence", () => {
  let service: AttestedService;
  let options: VerifyOptions;
  let evidence: Recording;
  before(async () => {
    service = await startAttestedService({ says: "dstack" });
    const { collateral, rootDer } = service.agent.platform;
    options = { ca: service.evidences.certificatePem, collateral, trustedRoot: rootDer };
    evidence = (await recordService(service.baseUrl, options)).evidence;
  });
  after(() => service.stop());

  /** With an answer of the service changed by whoever kept it. */
  const changed = (path: string, change: (body: string) => string): Recording => {
    const [name = "", answer] = Object.entries(evidence.answers).find(([key]) => key.startsWith(path)) ?? [];
    if (answer === undefined) throw new Error(`no answer of ${path}`);
    const body = Buffer.from(change(Buffer.from(answer.body, "base64").toString())).toString("base64");
    return { ...evidence, answers: { ...evidence.answers, [name]: { ...answer, body } } };
  };

  it("gives the config document that a genuine quote covers, as the running service does", async () => {
    expect((await verifyEvidence(evidence, options)).config).to.deep.equal(service.config);
    expect((await recordService(service.baseUrl, options)).config).to.deep.equal(service.config);
  });

  const expectNothingTold = (report: Report): void => {
    expect([report.contract, report.notes, report.warnings]).to.deep.equal([undefined, [], []]);
    expect(textOf(report)).to.include("contract not attested").and.not.include("Attested");
  };

  it("gives no config document for a quote that nobody signed, or whose signature is not checked", async () => {
    const forged = changed(
      "/attestation",
      editJson((answer: { quote: string }) => void (answer.quote = flipHexByte(answer.quote, 636 + 10))),
    );
    const { report, config } = await verifyEvidence(forged, options);
    expectNothingTold(report);
    expect(report.steps.find(({ id }) => id === "config")?.status).to.equal("passed");
    expect([report.outcome, config]).to.deep.equal(["failed", undefined]);
    const unsigned = { ...options, collateral: undefined, pccsUrl: "http://127.0.0.1:1", timeoutMs: 2_000 };
    const open = await verifyEvidence(evidence, unsigned);
    expect([open.report.outcome, open.config]).to.deep.equal(["incomplete", undefined]);
    expectNothingTold(open.report);
    const stale = await verifyEvidence({ ...evidence, nonce: "00".repeat(32) }, options);
    expect(stale.config).to.equal(undefined);
  });

  it("gives the config document of a service that says it is simulated, with that outcome", async () => {
    const simulated = changed("/info", (body) => body.replace('"tee":"dstack"', '"tee":"simulated"'));
    const { report, config } = await verifyEvidence(simulated);
    expect([report.outcome, config]).to.deep.equal(["simulated", service.config]);
    expect(textOf(report)).to.include("Attested, for you to judge:").and.include(CONTRACT);
  });

  it("shows no connection, and is named by the attested contract: its address may be another's", async () => {
    const { report } = await verifyEvidence({ ...evidence, base_url: "https://keys.example" }, options);
    expect(report.steps.find(({ id }) => id === "tlsLeaf")).to.include({
      status: "not_checked",
      detail: "recorded: there is no connection",
    });
    expect(report).to.include({ isRecorded: true, contract: CONTRACT });
    expect(textOf(report)).to.match(
      new RegExp(`^recorded evidence, said to be of https://keys.example; contract ${CONTRACT} \\(tee: dstack\\)\n`),
    );
    const live = await recordService(service.baseUrl, options);
    expect(textOf(live.report)).to.match(new RegExp(`^${service.baseUrl} `));
    expect(live.report.steps.find(({ id }) => id === "tlsLeaf")?.status).to.equal("passed");
  });

  it("fails for another contract than the one expected", async () => {
    const other = `0x${"11".repeat(20)}`;
    const { report, config } = await verifyEvidence(evidence, { ...options, contract: other });
    expect(report.steps.find(({ id }) => id === "config")).to.include({
      status: "failed",
      detail: `the attested contract is ${CONTRACT}, not the one expected`,
    });
    expect(config).to.equal(undefined);
    const same = await verifyEvidence(evidence, { ...options, contract: CONTRACT.toLowerCase() });
    expect(same.config).to.deep.equal(service.config);
    const wrong = await verifyEvidence(evidence, { contract: "0x12" }).catch((error: unknown) => error);
    expect(wrong).to.be.instanceOf(ClientError);
  });
});
