/**
 * Each verification step fails alone: one thing is tampered with, and exactly the step that checks it fails. Here the
 * quote and what it covers; evidence.test.ts has the rest.
 */
import { createHash } from "node:crypto";
import { expect } from "chai";
import { verifyService, STEP_IDS, type Step, type StepId, type VerifyOptions } from "../../../client/verify";
import { runtimeEventDigest } from "../../../protocol/attestation";
import { runtimeEvent, type LoggedEvent } from "../../../scripts/dev/tee/eventLog";
import {
  KEY_PROVIDER,
  PACKAGE,
  SOURCE_COMPOSE,
  imagesOf,
  startAttestedService,
  type AttestedService,
} from "../../support/attestedService";
import { EVIDENCE_STEPS, editJson, flipHexByte, measurementsOf, verification } from "../../support/verification";

const sha256 = (text: string): Buffer => createHash("sha256").update(text).digest();

/** Allow-list and root key have tests of their own with the contracts, which are not asked here. */
const ASK_CONTRACTS: readonly StepId[] = ["allowlist", "rootKey"];
const QUOTE_STEPS = STEP_IDS.filter((id) => !ASK_CONTRACTS.includes(id) && !EVIDENCE_STEPS.includes(id));

describe("verification, step by step", () => {
  const bed = verification(QUOTE_STEPS);
  const { verify, note, expectFailure } = bed;
  let service: AttestedService;
  before(() => void (service = bed.service()));

  it("passes every step of an honest service whose quotes a trusted root vouches for", async () => {
    const report = await verify();
    const open = report.steps.filter(({ id, status }) => !ASK_CONTRACTS.includes(id) && status !== "passed");
    expect(open, JSON.stringify(open)).to.deep.equal([]);
    // The contracts were not asked, and that alone prevents success.
    expect(report.outcome).to.equal("incomplete");
    expect(report.exitCode).to.equal(3);
    expect(report.notes[0]).to.contain("full");
  });

  describe("packages", () => {
    it("fail when the service serves another one than the quote covers", async () => {
      service.tamper(`/packages/${PACKAGE.name}`, (body) => `${body}!`);
      await expectFailure(["packages"], /is not the package that the quote covers/);
    });

    it("are not checked when the file is missing", async () => {
      service.refuse(`/packages/${PACKAGE.name}`, 404);
      const { steps } = await verify();
      expect(steps.find(({ id }) => id === "packages")?.status).to.equal("not_checked");
    });
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

  it("machine image: fails for an unexpected measurement, not checked without an expectation", async () => {
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

  describe("event log of a machine with another application, which forges the events of this one", () => {
    /** The genuine machine image booted it; afterwards it added the events of the application it claims to be. */
    const claimed = {
      appId: Buffer.alloc(20, 0xa1),
      appCompose: JSON.stringify({ docker_compose_file: "services: {}" }),
    };
    /** One whose hash, and so the application id, begins with a colon. */
    const ownCompose = (): string => {
      for (let tries = 0; ; tries++) {
        const compose = JSON.stringify({ docker_compose_file: "services: {}", tries });
        if (sha256(compose)[0] === ":".charCodeAt(0)) return compose;
      }
    };
    let forger: AttestedService;
    before(async () => {
      const { appId, appCompose } = claimed;
      forger = await startAttestedService({
        agent: {
          appCompose: ownCompose(),
          addedEvents: [runtimeEvent("app-id", appId), runtimeEvent("compose-hash", sha256(appCompose))],
        },
      });
    });
    afterEach(() => forger.honest());
    after(() => forger.stop());

    /** Shows the log with the boot's own events of these names changed. */
    const stepsWith = async (hide: (event: LoggedEvent) => void): Promise<Partial<Record<StepId, string>>> => {
      forger.tamper(
        "/attestation",
        editJson((answer: { event_log: string }) => {
          const log = JSON.parse(answer.event_log) as LoggedEvent[];
          for (const name of ["app-id", "compose-hash"])
            log
              .filter((one) => one.event === name)
              .slice(0, 1)
              .forEach(hide);
          answer.event_log = JSON.stringify(log);
        }),
      );
      forger.tamper(
        "/info",
        editJson((info: Record<string, unknown>) => {
          info["app_id"] = claimed.appId.toString("hex");
          info["compose_hash"] = sha256(claimed.appCompose).toString("hex");
          (info["tcb_info"] as Record<string, unknown>)["app_compose"] = claimed.appCompose;
        }),
      );
      const { steps } = await verifyService(forger.baseUrl, { ca: forger.evidences.certificatePem });
      return Object.fromEntries(steps.map(({ id, status }) => [id, status]));
    };

    it("fails when it shows both", async () => {
      expect(await stepsWith(() => undefined)).to.include({ eventLog: "passed", composeHash: "failed" });
    });

    it("fails when it shows the boot's own as events of another type", async () => {
      const steps = await stepsWith((own) => {
        own.digest = runtimeEventDigest(own.event, Buffer.from(own.event_payload, "hex")).toString("hex");
        Object.assign(own, { event_type: 1, event: "", event_payload: "" });
      });
      expect(steps).to.include({ eventLog: "failed", composeHash: "not_checked" });
    });

    it("fails when it shows the boot's own under longer names", async () => {
      const steps = await stepsWith((own) => {
        own.event += ":";
        own.event_payload = own.event_payload.slice(2);
      });
      expect(steps).to.include({ eventLog: "failed", composeHash: "not_checked" });
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

  describe("key management", () => {
    it("fails when another one gives the keys, and shows the id when none is expected", async () => {
      await expectFailure(["keyProvider"], /from another key management, 3059ab/, { keyProvider: "3059ac" });
      expect(await keyProvider(service, {})).to.include({
        status: "not_checked",
        detail: "no id given to compare with (--key-provider); the keys come from 3059ab",
      });
      expect(await keyProvider(service, { keyProvider: "0x3059AB" })).to.include({ status: "passed" });
    });

    it("fails for keys from anywhere but a key management, whatever id is expected", async () => {
      for (const name of ["none", "local-sgx", "tpm", "simulated"]) {
        const own = await startAttestedService({
          says: "dstack",
          secure: false,
          agent: { keyProvider: { ...KEY_PROVIDER, name } },
        });
        expect(await keyProvider(own, { keyProvider: KEY_PROVIDER.id }), name).to.include({ status: "failed" });
        await own.stop();
      }
    });

    it("fails when the application added a second one to the log", async () => {
      const added = runtimeEvent("key-provider", Buffer.from(JSON.stringify(KEY_PROVIDER)));
      const forged = await startAttestedService({
        says: "dstack",
        secure: false,
        agent: { keyProvider: { name: "kms", id: "0bad" }, addedEvents: [added] },
      });
      expect(await keyProvider(forged, { keyProvider: KEY_PROVIDER.id })).to.include({
        status: "failed",
        detail: 'the event log has 2 events "key-provider", not one',
      });
      await forged.stop();
    });

    const keyProvider = async (of: AttestedService, options: VerifyOptions): Promise<Step | undefined> =>
      (await verifyService(of.baseUrl, { ca: of.evidences.certificatePem, ...options })).steps.find(
        ({ id }) => id === "keyProvider",
      );
  });

  it(
    "image contents: fails when the service runs another image than the source builds, " +
      "or the compose file lacks one",
    async () => {
      const built = imagesOf(service);
      for (const name of ["relayer", "executor", "ingress"]) {
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
      await expectFailure(["imageContents"], /the service "relayer" has another read_only/, {
        composeFile: SOURCE_COMPOSE.replace("  relayer:\n", "  relayer:\n    read_only: true\n"),
      });
      const uncompared = await verifyService(service.baseUrl, {
        ca: service.evidences.certificatePem,
        builtImages: built,
      });
      expect(uncompared.steps.find(({ id }) => id === "imageContents")).to.include({
        status: "not_checked",
        detail: "no compose file of the source given to compare how its images run (--compose)",
      });
      const { builtImages: _, ...without } = { builtImages: built };
      const report = await verifyService(service.baseUrl, { ca: service.evidences.certificatePem, ...without });
      expect(report.steps.find(({ id }) => id === "imageContents")?.status).to.equal("not_checked");
    },
  );

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
});
