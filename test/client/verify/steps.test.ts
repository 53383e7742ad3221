/** Each verification step fails alone: one thing is tampered with, and exactly the step that checks it fails. */
import { createHash } from "node:crypto";
import { expect } from "chai";
import fc from "fast-check";
import {
  verifyService,
  STEP_IDS,
  type Measurements,
  type Report,
  type StepId,
  type VerifyOptions,
} from "../../../client/verify";
import { readEvidence, startAttestedService, type AttestedService, imagesOf } from "../../support/attestedService";
import { count, SEED } from "../../support/counts";

/** The allow-list has a test of its own with the contract; it is not asked here. */
const CHECKED = STEP_IDS.filter((id) => id !== "allowlist");

const editJson = (edit: (value: never) => void) => (body: string) => {
  const value = JSON.parse(body) as never;
  edit(value);
  return JSON.stringify(value);
};
const flipHexByte = (hex: string, byte: number): string => {
  const bytes = Buffer.from(hex, "hex");
  bytes.writeUInt8((bytes.readUInt8(byte) ^ 1) & 0xff, byte);
  return bytes.toString("hex");
};

function measurementsOf({ agent }: AttestedService): Measurements {
  const [rtmr0, rtmr1, rtmr2] = agent.measurements.rtmrs.map((register) => register.toString("hex")) as [
    string,
    string,
    string,
  ];
  return { mrtd: agent.measurements.mrtd.toString("hex"), rtmr0, rtmr1, rtmr2 };
}

describe("verification, step by step", () => {
  let service: AttestedService;
  const verify = (options: VerifyOptions = {}): Promise<Report> =>
    verifyService(service.baseUrl, {
      ca: service.evidences.certificatePem,
      collateral: service.agent.platform.collateral,
      trustedRoot: service.agent.platform.rootDer,
      measurements: measurementsOf(service),
      builtImages: imagesOf(service),
      ...options,
    });

  const seenAlone = new Set<StepId>();
  function note(report: Report): StepId[] {
    const failures = report.steps.filter(({ status }) => status === "failed").map(({ id }) => id);
    if (failures.length === 1) failures.forEach((id) => seenAlone.add(id));
    return failures;
  }

  /** Exactly these steps failed; steps that depend on them may be unchecked; every other step passed. */
  async function expectFailure(steps: StepId[], detail: RegExp, options: VerifyOptions = {}): Promise<void> {
    const report = await verify(options);
    const failures = report.steps.filter(({ status }) => status === "failed");
    expect(note(report), JSON.stringify(failures)).to.deep.equal(steps);
    expect(failures[0]?.detail).to.match(detail);
    expect(report.outcome).to.equal("failed");
    expect(report.exitCode).to.equal(1);
  }

  before(async () => {
    service = await startAttestedService({ says: "dstack" });
  });
  afterEach(() => service.honest());
  after(async () => {
    await service.stop();
    // A step that no test made fail alone is untested.
    expect([...seenAlone].sort()).to.deep.equal([...CHECKED].sort());
  });

  it("passes every step of an honest service whose quotes a trusted root vouches for", async () => {
    const report = await verify();
    const open = report.steps.filter(({ id, status }) => id !== "allowlist" && status !== "passed");
    expect(open, JSON.stringify(open)).to.deep.equal([]);
    // The allow-list was not asked, and that alone prevents success.
    expect(report.outcome).to.equal("incomplete");
    expect(report.exitCode).to.equal(3);
    expect(report.notes[0]).to.contain("full");
  });

  describe("quote signature and TCB", () => {
    it("fails under Intel's root, which did not sign these quotes", async () => {
      const report = await verify({ trustedRoot: undefined });
      expect(report.steps.filter(({ status }) => status === "failed").map(({ id }) => id)).to.deep.equal([
        "signature",
        "evidenceQuote",
      ]);
      expect(report.exitCode).to.equal(1);
    });

    it("fails when one byte of the firmware's measurement is changed", async () => {
      service.tamper(
        "/attestation",
        editJson((answer: { quote: string }) => void (answer.quote = flipHexByte(answer.quote, 48 + 136))),
      );
      // The evidence was made by an image with the honest measurement: it no longer matches either.
      await expectFailure(["signature", "machineImage", "evidenceQuote"], /signature is invalid/);
    });

    it("fails when one byte of the signature is changed", async () => {
      service.tamper(
        "/attestation",
        editJson((answer: { quote: string }) => void (answer.quote = flipHexByte(answer.quote, 636 + 10))),
      );
      await expectFailure(["signature"], /signature is invalid/);
    });

    it("fails when the quote cannot be parsed, and leaves unchecked what depends on it", async () => {
      service.tamper(
        "/attestation",
        editJson((answer: { quote: string }) => void (answer.quote = answer.quote.slice(0, 1200))),
      );
      await expectFailure(["signature"], /cannot be read/);
    });

    it("fails when the platform's certificate is revoked", async () => {
      const collateral = { ...service.agent.platform.collateral, pck_crl: await service.agent.platform.revokingCrl() };
      await expectFailure(["signature", "evidenceQuote"], /revoked/, { collateral });
    });

    it("rejects a revocation list that its authority did not sign, or that cannot be parsed", async () => {
      const { collateral } = service.agent.platform;
      await expectFailure(["signature", "evidenceQuote"], /revocation list is not signed/, {
        collateral: { ...collateral, pck_crl: collateral.root_ca_crl },
      });
      await expectFailure(["signature", "evidenceQuote"], /revocation list is not signed|cannot be read/, {
        collateral: { ...collateral, pck_crl: flipHexByte(collateral.pck_crl, collateral.pck_crl.length / 2 - 1) },
      });
      await expectFailure(["signature", "evidenceQuote"], /cannot be read/, {
        collateral: { ...collateral, root_ca_crl: "00ff" },
      });
    });

    it("fails on expired collateral", async () => {
      await expectFailure(["signature", "evidenceQuote"], /not in force|expired/i, {
        nowSeconds: Math.floor(Date.now() / 1000) + 60 * 24 * 3600,
      });
    });

    it("fails on a TCB that is not accepted, and passes when the user accepts it", async () => {
      const stale = await startAttestedService({ says: "dstack", agent: { tcbStatus: "OutOfDate" } });
      try {
        const { platform } = stale.agent;
        const options = {
          ca: stale.evidences.certificatePem,
          collateral: platform.collateral,
          trustedRoot: platform.rootDer,
        };
        const strict = await verifyService(stale.baseUrl, options);
        expect(strict.steps.find(({ id }) => id === "signature")).to.include({
          status: "failed",
          detail: "genuine, but the platform's TCB is OutOfDate",
        });
        const lenient = await verifyService(stale.baseUrl, { ...options, acceptTcb: ["OutOfDate"] });
        expect(lenient.steps.find(({ id }) => id === "signature")?.status).to.equal("passed");
      } finally {
        await stale.stop();
      }
    });

    it("is not checked without collateral, which is not success", async () => {
      const report = await verify({ collateral: undefined, pccsUrl: service.baseUrl, timeoutMs: 2_000 });
      expect(
        report.steps.filter(({ id }) => id === "signature" || id === "evidenceQuote").map(({ status }) => status),
      ).to.deep.equal(["not_checked", "not_checked"]);
      expect(report.exitCode).to.equal(3);
    });
  });

  it("machine image: fails for another measurement than expected, and is not checked when none is expected", async () => {
    for (const name of ["mrtd", "rtmr0", "rtmr1", "rtmr2"] as const) {
      const expected = measurementsOf(service);
      await expectFailure(["machineImage"], new RegExp(name, "i"), {
        measurements: { ...expected, [name]: flipHexByte(expected[name], 47) },
      });
    }
    const report = await verify({ measurements: undefined });
    expect(report.steps.find(({ id }) => id === "machineImage")).to.include({ status: "not_checked" });
  });

  it("freshness: fails when an older answer is replayed", async () => {
    let recorded: string | undefined;
    service.tamper("/attestation", (body) => (recorded ??= body));
    await verify();
    await expectFailure(["freshness"], /not made for this question/);
  });

  describe("config document", () => {
    it("fails when one character of the document is changed", async () => {
      service.tamper(
        "/info",
        editJson((info: { config: { rpc: { hosts: string[] } } }) => void (info.config.rpc.hosts = ["rpc.exampl3"])),
      );
      await expectFailure(["config"], /not the one the quote covers/);
    });

    it("fails when the API names another contract than the attested one", async () => {
      const other = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
      service.tamper(
        "/core/v1/get_node_chain_config",
        editJson((answer: { contract_address: string }) => void (answer.contract_address = other)),
      );
      // The namespace the API states is the honest contract's, so it does not match the API's contract either.
      await expectFailure(["config", "keyNamespace"], /not the attested one/);
    });

    it("fails when the API charges other prices than the attested ones", async () => {
      service.tamper(
        "/core/v1/limits",
        editJson((answer: { prices: { runSecondCents: number } }) => void (answer.prices.runSecondCents = 2)),
      );
      await expectFailure(["config"], /limits or prices/);
    });
  });

  describe("event log", () => {
    const editLog = (edit: (log: { event: string; event_payload: string; digest: string }[]) => void) =>
      editJson((answer: { event_log: string }) => {
        const log = JSON.parse(answer.event_log);
        edit(log);
        answer.event_log = JSON.stringify(log);
      });

    it("fails when one byte of a payload is changed, and leaves the compose hash unchecked", async () => {
      service.tamper(
        "/attestation",
        editLog((log) =>
          log
            .filter(({ event }) => event === "compose-hash")
            .forEach((event) => (event.event_payload = flipHexByte(event.event_payload, 0))),
        ),
      );
      await expectFailure(["eventLog"], /register 3/);
    });

    it("fails when an event is omitted, added or moved", async () => {
      for (const edit of [
        (log: unknown[]) => log.pop(),
        (log: unknown[]) => log.push(log.at(-1)),
        (log: unknown[]) => log.push(log.splice(4, 1)[0]),
      ]) {
        service.tamper("/attestation", editLog(edit));
        await expectFailure(["eventLog"], /register 3/);
        service.honest();
      }
    });

    it("fails when the log of a boot register is changed", async () => {
      service.tamper(
        "/attestation",
        editLog((log) => log.slice(0, 1).forEach((event) => (event.digest = flipHexByte(event.digest, 3)))),
      );
      await expectFailure(["eventLog"], /register 0/);
    });

    it("fails when a stated digest is not that of its event", async () => {
      service.tamper(
        "/attestation",
        editLog((log) => log.slice(-1).forEach((event) => (event.digest = "ab".repeat(48)))),
      );
      await expectFailure(["eventLog"], /digest beside the event/);
    });
  });

  describe("compose hash", () => {
    it("fails when one character of app_compose is changed", async () => {
      service.tamper(
        "/info",
        editJson(
          (info: { tcb_info: { app_compose: string } }) =>
            void (info.tcb_info.app_compose = info.tcb_info.app_compose.replace("simulated", "simulat3d")),
        ),
      );
      await expectFailure(["composeHash"], /not what was measured/);
    });

    it("fails when /info states another compose hash or application id than was measured", async () => {
      service.tamper(
        "/info",
        editJson((info: { compose_hash: string }) => void (info.compose_hash = flipHexByte(info.compose_hash, 0))),
      );
      await expectFailure(["composeHash"], /compose_hash of \/info/);
      service.honest();
      service.tamper(
        "/info",
        editJson((info: { app_id: string }) => void (info.app_id = flipHexByte(info.app_id, 0))),
      );
      await expectFailure(["composeHash"], /app_id of \/info/);
    });
  });

  it("image contents: fails when the service runs another image than the source builds, or the compose file lacks one", async () => {
    const built = imagesOf(service);
    for (const name of ["relayer", "executor"]) {
      const options = { builtImages: { ...built, [name]: `sha256:${"0".repeat(64)}` } };
      await expectFailure(
        ["imageContents"],
        new RegExp(`the service "${name}" runs .* but the source builds sha256:0000`),
        options,
      );
    }
    await expectFailure(["imageContents"], /has no service "signer"/, {
      builtImages: { ...built, signer: `sha256:${"0".repeat(64)}` },
    });
    const { builtImages: _, ...without } = { builtImages: built };
    const report = await verifyService(service.baseUrl, { ca: service.evidences.certificatePem, ...without });
    expect(report.steps.find(({ id }) => id === "imageContents")?.status).to.equal("not_checked");
  });

  it("images: fails when an image is named by tag, and only there when the measured file says so", async () => {
    const tagged = await startAttestedService({
      says: "dstack",
      agent: {
        appCompose: JSON.stringify({
          runner: "docker-compose",
          docker_compose_file: "services:\n  relayer:\n    image: registry.invalid/relayer:latest\n",
        }),
      },
    });
    try {
      const { platform } = tagged.agent;
      const report = await verifyService(tagged.baseUrl, {
        ca: tagged.evidences.certificatePem,
        collateral: platform.collateral,
        trustedRoot: platform.rootDer,
      });
      expect(note(report)).to.deep.equal(["images"]);
    } finally {
      await tagged.stop();
    }
  });

  describe("evidence", () => {
    it("quote: fails when the checksum file is not the one it covers", async () => {
      service.tamper("/evidences/sha256sum.txt", (body) => `${body}${"00".repeat(32)}  extra.txt\n`);
      service.refuse("/evidences/extra.txt", 404);
      await expectFailure(["evidenceQuote"], /does not cover sha256sum/);
    });

    it("quote: fails when one byte of its signature is changed", async () => {
      service.tamper(
        "/evidences/quote.json",
        editJson((file: { quote: string }) => void (file.quote = flipHexByte(file.quote, 636 + 10))),
      );
      await expectFailure(["evidenceQuote"], /signature is invalid/);
    });

    it("quote: fails when another machine image made it", async () => {
      const other = await startAttestedService({
        agent: { appCompose: JSON.stringify({ docker_compose_file: "services: {}" }) },
      });
      try {
        const foreign = await other.tee.quote(
          Buffer.concat([
            createHash("sha256")
              .update(await readEvidence(service, "sha256sum.txt"))
              .digest(),
            Buffer.alloc(32),
          ]),
        );
        service.tamper("/evidences/quote.json", () => JSON.stringify(foreign));
        await expectFailure(["evidenceQuote"], /another app-id/);
      } finally {
        await other.stop();
      }
    });

    it("files: fails when one byte of a file is changed", async () => {
      service.tamper("/evidences/acme-account.json", (body) => body.replace("account/1", "account/2"));
      await expectFailure(["evidenceFiles"], /acme-account\.json does not have the checksum/);
    });

    it("files: is not checked when a listed file is withheld", async () => {
      service.refuse("/evidences/acme-account.json", 404);
      const report = await verify();
      expect(report.steps.find(({ id }) => id === "evidenceFiles")).to.include({ status: "not_checked" });
      expect(report.exitCode).to.equal(3);
    });
  });

  it("TLS certificate: fails when the connection ends at another certificate", async () => {
    const between = await startAttestedService({ says: "dstack" });
    try {
      const { platform } = between.agent;
      const certificate = await between.presentAnotherCertificate();
      const report = await verifyService(between.baseUrl, {
        ca: certificate,
        collateral: platform.collateral,
        trustedRoot: platform.rootDer,
      });
      const failures = report.steps.filter(({ status }) => status === "failed");
      expect(note(report)).to.deep.equal(["tlsLeaf"]);
      expect(failures[0]?.detail).to.contain("something stands in between");
    } finally {
      await between.stop();
    }
  });

  it("key namespace: fails when it differs from that of the stated chain and contract", async () => {
    service.tamper(
      "/core/v1/get_node_chain_config",
      editJson((answer: { key_namespace: string }) => void (answer.key_namespace = `0x${"11".repeat(32)}`)),
    );
    await expectFailure(["keyNamespace"], /not that of the stated chain/);
  });

  it("any single changed character in covered data fails the verification", async () => {
    const certificate = "/evidences/cert-localhost.pem";
    const places: Record<string, (body: string, change: (text: string) => string) => string> = {
      "/evidences/sha256sum.txt": (body, change) => change(body),
      "/evidences/acme-account.json": (body, change) => change(body),
      [certificate]: (body, change) => change(body),
      "/info#config": (body, change) =>
        inJson(body, (info: { config: unknown }) => (info.config = JSON.parse(change(JSON.stringify(info.config))))),
      "/info#app_compose": (body, change) =>
        inJson(
          body,
          (info: { tcb_info: { app_compose: string } }) =>
            (info.tcb_info.app_compose = change(info.tcb_info.app_compose)),
        ),
      "/attestation#event_log": (body, change) =>
        inJson(
          body,
          (answer: { event_log: string }) => (answer.event_log = changedRuntimeEvents(answer.event_log, change)),
        ),
    };
    const change = fc.record({
      place: fc.constantFrom(...Object.keys(places)),
      at: fc.nat(),
      digit: fc.constantFrom(..."0123456789"),
    });
    await fc.assert(
      fc.asyncProperty(change, async ({ place, at, digit }) => {
        // A digit in place of another character: never the same text, and never just another encoding of it.
        const replaced = (text: string): string => {
          const index = [...text].findIndex(
            (character, position) =>
              position >= at % text.length && /[A-Za-z0-9]/.test(character) && character !== digit,
          );
          return index < 0 ? `${text}${digit}` : text.slice(0, index) + digit + text.slice(index + 1);
        };
        service.tamper(place.split("#")[0] ?? place, (body) => places[place]?.(body, replaced) ?? body);
        const report = await verify();
        service.honest();
        expect(report.outcome, `${place} at ${at}: ${JSON.stringify(report.steps)}`).to.equal("failed");
      }),
      { seed: SEED, numRuns: count(40, 2_000) },
    );
  });
});

/** A document that no longer parses counts as changed. */
function inJson(body: string, edit: (value: never) => void): string {
  const value = JSON.parse(body) as never;
  try {
    edit(value);
    return JSON.stringify(value);
  } catch {
    return `${body}0`;
  }
}

/** For boot events only the digest is measured; for run-time events everything. */
function changedRuntimeEvents(log: string, change: (text: string) => string): string {
  const start = log.indexOf('{"imr":3');
  return log.slice(0, start) + change(log.slice(start));
}
