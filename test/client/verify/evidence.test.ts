/** The evidence files, the connection and the key namespace in a verification, each tampered with alone. */
import { createHash } from "node:crypto";
import { expect } from "chai";
import fc from "fast-check";
import { verifyService } from "../../../client/verify";
import { readEvidence, startAttestedService, type AttestedService } from "../../support/attestedService";
import { count, SEED } from "../../support/counts";
import { EVIDENCE_STEPS, editJson, flipHexByte, verification } from "../../support/verification";

describe("verification of evidence, connection and key namespace", () => {
  const bed = verification(EVIDENCE_STEPS);
  const { verify, note, expectFailure } = bed;
  let service: AttestedService;
  before(() => void (service = bed.service()));

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
      expect(failures[0]?.detail).to.contain("something terminates TLS in between");
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
