/** Verifies an attested service that a test has tampered with. */
import { expect } from "chai";
import { verifyService, type Measurements, type Report, type StepId, type VerifyOptions } from "../../client/verify";
import { imagesOf, KEY_PROVIDER, SOURCE_COMPOSE, startAttestedService, type AttestedService } from "./attestedService";

/** The steps that evidence.test.ts makes fail alone; steps.test.ts covers all others. */
export const EVIDENCE_STEPS: readonly StepId[] = ["evidenceQuote", "evidenceFiles", "tlsLeaf", "keyNamespace"];

export const editJson = (edit: (value: never) => void) => (body: string) => {
  const value = JSON.parse(body) as never;
  edit(value);
  return JSON.stringify(value);
};
export const flipHexByte = (hex: string, byte: number): string => {
  const bytes = Buffer.from(hex, "hex");
  bytes.writeUInt8((bytes.readUInt8(byte) ^ 1) & 0xff, byte);
  return bytes.toString("hex");
};

export function measurementsOf({ agent }: AttestedService): Measurements {
  const [rtmr0, rtmr1, rtmr2] = agent.measurements.rtmrs.map((register) => register.toString("hex")) as [
    string,
    string,
    string,
  ];
  return { mrtd: agent.measurements.mrtd.toString("hex"), rtmr0, rtmr1, rtmr2 };
}

export interface Verification {
  service(): AttestedService;
  verify(options?: VerifyOptions): Promise<Report>;
  /** The steps that failed. */
  note(report: Report): StepId[];
  expectFailure(steps: StepId[], detail: RegExp, options?: VerifyOptions): Promise<void>;
}

/** Call inside `describe`. `alone` are the steps that its tests make fail alone, each at least once. */
export function verification(alone: readonly StepId[]): Verification {
  let attested: AttestedService;
  const seenAlone = new Set<StepId>();
  const service = (): AttestedService => attested;
  const verify = (options: VerifyOptions = {}): Promise<Report> =>
    verifyService(service().baseUrl, {
      ca: service().evidences.certificatePem,
      collateral: service().agent.platform.collateral,
      trustedRoot: service().agent.platform.rootDer,
      measurements: measurementsOf(service()),
      keyProvider: KEY_PROVIDER.id,
      builtImages: imagesOf(service()),
      composeFile: SOURCE_COMPOSE,
      ...options,
    });

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
    attested = await startAttestedService({ says: "dstack" });
  });
  afterEach(() => attested.honest());
  after(async () => {
    await attested.stop();
    // A step that no test made fail alone is untested.
    expect([...seenAlone].sort()).to.deep.equal([...alone].sort());
  });

  return { service, verify, note, expectFailure };
}
