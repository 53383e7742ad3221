/**
 * Every formula of the transparency endpoints, computed independently with hashes only, against the executor's answers
 * over the guest-agent simulator.
 */
import { createHash } from "node:crypto";
import { expect } from "chai";
import fc from "fast-check";
import { attest } from "../../../executor/tee";
import {
  attestationReportData,
  replayRegister,
  runtimeEventDigest,
  runtimeEventDigestJson,
} from "../../../protocol/attestation";
import {
  CHAIN_ID,
  CONTRACT,
  configDocument,
  readEvidence,
  startAttestedService,
  type AttestedService,
} from "../../support/attestedService";
import { SEED } from "../../support/counts";

const sha = (algorithm: string, ...parts: (Buffer | string)[]): Buffer =>
  createHash(algorithm)
    .update(Buffer.concat(parts.map((part) => Buffer.from(part as string))))
    .digest();
const hex = (text: string): Buffer => Buffer.from(text, "hex");
/** Offsets from the start of a version 4 quote, from Intel's table. */
const RTMR3_AT = 48 + 472;
const REPORT_DATA_AT = 48 + 520;

/** JCS for the ASCII documents of these tests: members sorted by name, no spaces. */
function jcs(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(jcs).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${jcs(member)}`).join(",")}}`;
}

interface LogLine {
  imr: number;
  event_type: number;
  digest: string;
  event: string;
  event_payload: string;
}

describe("an attestation, recomputed with hashes only", () => {
  let service: AttestedService;
  before(async () => {
    service = await startAttestedService({ secure: false });
  });
  after(() => service.stop());

  const get = async (path: string): Promise<never> => (await (await fetch(service.baseUrl + path)).json()) as never;
  const logOf = (answer: { event_log: string }): LogLine[] => JSON.parse(answer.event_log) as LogLine[];

  it(
    "the compose hash is SHA-256 of app_compose and is in the log of register 3, which " +
      "replays to the quote's RTMR3",
    async () => {
      const info: { compose_hash: string; tcb_info: { app_compose: string } } = await get("/info");
      const answer: { quote: string; event_log: string } = await get("/attestation");
      expect(sha("sha256", info.tcb_info.app_compose).toString("hex")).to.equal(info.compose_hash);
      const events = logOf(answer).filter(({ imr }) => imr === 3);
      expect(events.map(({ event }) => event)).to.include.members([
        "app-id",
        "compose-hash",
        "instance-id",
        "key-provider",
      ]);
      expect(events.find(({ event }) => event === "compose-hash")?.event_payload).to.equal(info.compose_hash);
      let register: Buffer = Buffer.alloc(48);
      for (const { event, event_payload } of events) {
        register = sha("sha384", register, sha("sha384", hex("01000008"), ":", event, ":", hex(event_payload)));
      }
      expect(
        hex(answer.quote)
          .subarray(RTMR3_AT, RTMR3_AT + 48)
          .equals(register),
      ).to.equal(true);
    },
  );

  it("run-time events have an empty digest; the reader computes it", async () => {
    const answer: { event_log: string } = await get("/attestation");
    for (const { event_type, digest } of logOf(answer))
      expect(digest).to.have.length(event_type === 0x08000001 ? 0 : 96);
  });

  it("without a nonce the report data is zero", async () => {
    const { quote }: { quote: string } = await get("/attestation");
    expect(
      hex(quote)
        .subarray(REPORT_DATA_AT, REPORT_DATA_AT + 64)
        .equals(Buffer.alloc(64)),
    ).to.equal(true);
  });

  it("with a nonce the report data is SHA-512 over tag, nonce, leaf and config document", async () => {
    const { config }: { config: object } = await get("/info");
    for (const nonce of ["00".repeat(16), "ab".repeat(24), "FF".repeat(32)]) {
      const { quote }: { quote: string } = await get(`/attestation?nonce=${nonce}`);
      const expected = sha("sha512", "attest/v1", hex(nonce), Buffer.alloc(32), sha("sha256", jcs(config)));
      expect(
        hex(quote)
          .subarray(REPORT_DATA_AT, REPORT_DATA_AT + 64)
          .equals(expected),
        nonce,
      ).to.equal(true);
    }
  });

  it("with a TLS certificate the leaf's SHA-256 replaces the zeros, and a renewal applies at once", async () => {
    const secure = await startAttestedService({ secure: true });
    try {
      const nonce = "5a".repeat(32);
      const pemFile = `${secure.evidenceDir}/cert-localhost.pem`;
      const answer = await attest(secure.tee, { config: secure.config, tlsCertFile: pemFile }, { nonce });
      const expected = sha(
        "sha512",
        "attest/v1",
        hex(nonce),
        secure.evidences.leafDigest,
        sha("sha256", jcs(secure.config)),
      );
      expect(answer.report_data).to.equal(expected.toString("hex"));
      expect(answer.tls_leaf_sha256).to.equal(secure.evidences.leafDigest.toString("hex"));
      const missing = await attest(secure.tee, { config: secure.config, tlsCertFile: `${pemFile}.not-yet` }, { nonce });
      expect(missing.tls_leaf_sha256).to.equal("00".repeat(32));
    } finally {
      await secure.stop();
    }
  });

  it(
    "the first 64 hex characters of quote.json's report data are SHA-256 of " +
      "sha256sum.txt, which lists the other files",
    async () => {
      const quoteFile = JSON.parse(await readEvidence(service, "quote.json")) as { quote: string; report_data: string };
      const checksums = await readEvidence(service, "sha256sum.txt");
      expect(quoteFile.report_data.slice(0, 64)).to.equal(sha("sha256", checksums).toString("hex"));
      expect(
        hex(quoteFile.quote)
          .subarray(REPORT_DATA_AT, REPORT_DATA_AT + 64)
          .toString("hex"),
      ).to.equal(quoteFile.report_data);
      for (const line of checksums.trim().split("\n")) {
        const [sum, name] = line.split("  ") as [string, string];
        expect(sha("sha256", await readEvidence(service, name)).toString("hex")).to.equal(sum);
      }
    },
  );

  it("the newer digest of a run-time event hashes the JCS of name, payload and type", () => {
    const expected = sha("sha384", '{"name":"app-id","payload":"0102","type":134217729}');
    expect(runtimeEventDigestJson("app-id", hex("0102")).equals(expected)).to.equal(true);
    expect(runtimeEventDigest("app-id", hex("0102")).equals(expected)).to.equal(false);
  });

  it("every input of the report data changes it", () => {
    const base = { nonce: Buffer.alloc(16), tlsLeafDigest: Buffer.alloc(32, 1), config: { a: 1 } };
    const all = [
      base,
      { ...base, nonce: Buffer.alloc(17) },
      { ...base, tlsLeafDigest: Buffer.alloc(32, 2) },
      { ...base, config: { a: 2 } },
    ];
    expect(new Set(all.map((facts) => attestationReportData(facts).toString("hex"))).size).to.equal(all.length);
  });

  it("the order of the config document's members does not matter", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (config) => {
        const turned = Object.fromEntries(Object.entries(config).reverse());
        const nonce = Buffer.alloc(16);
        expect(
          attestationReportData({ nonce, config }).equals(attestationReportData({ nonce, config: turned })),
        ).to.equal(true);
      }),
      { seed: SEED, numRuns: 100 },
    );
  });

  it("a register depends only on its digests in their order", () => {
    expect(replayRegister([]).equals(Buffer.alloc(48))).to.equal(true);
    const [one, other] = [Buffer.alloc(48, 1), Buffer.alloc(48, 2)] as [Buffer, Buffer];
    expect(replayRegister([one, other]).equals(replayRegister([other, one]))).to.equal(false);
  });
});

describe("the config document", () => {
  it("names hosts, never credentials or paths of a URL", () => {
    const text = JSON.stringify(configDocument());
    expect(text).to.contain('"hosts":["rpc.example"]');
    for (const secret of ["secret", "api-key", "user:"]) expect(text).not.to.contain(secret);
  });

  it("states what the executor checked at its start", () => {
    const document = configDocument();
    expect(document).to.include({ chain_id: CHAIN_ID, contract_address: CONTRACT });
    expect(document.key_namespace).to.match(/^0x[0-9a-f]{64}$/);
    expect(document.rpc).to.include({ quorum: 1, max_head_age_seconds: 60 });
    expect(document.budgets).to.deep.equal({ lease_confirmations: 3 });
    expect(document.sandbox).to.deep.equal({ level: "full", missing: [] });
  });
});
