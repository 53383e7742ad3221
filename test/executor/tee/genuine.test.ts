/** Production connected to a simulator by accident does not start. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { openTee, requireGenuineQuote, TeeError, type TeeSource } from "../../../executor/tee";
import { startGuestAgentDouble, type GuestAgentDouble } from "../../../scripts/dev/tee/guestAgent";
import { failureOf } from "../../support/refusal";

const QUOTE_SIGNATURE_AT = 636;
const QE_REPORT_AT = QUOTE_SIGNATURE_AT + 128 + 6;

describe("the check that a quote is of a real TEE", () => {
  const directory = mkdtempSync(join(tmpdir(), "genuine-"));
  let agent: GuestAgentDouble;
  let tee: TeeSource;
  before(async () => {
    agent = await startGuestAgentDouble({ socketPath: join(directory, "agent.sock") });
    tee = openTee({ kind: "dstack", endpoint: agent.socketPath });
  });
  after(async () => {
    await tee.close();
    await agent.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  /** The agent's quotes with one byte changed in transit. */
  const withByteChanged = (at: number): TeeSource => ({
    ...({
      kind: "dstack",
      rootKey: () => tee.rootKey(),
      info: () => tee.info(),
      close: async () => undefined,
    } as const),
    quote: async (reportData) => {
      const answer = await tee.quote(reportData);
      const bytes = Buffer.from(answer.quote, "hex");
      bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
      return { ...answer, quote: bytes.toString("hex") };
    },
  });

  it("refuses the development simulator, which no chain to Intel's root vouches for", async () => {
    expect(await failureOf(requireGenuineQuote(tee)))
      .to.be.instanceOf(TeeError)
      .with.property("message")
      .that.contains("production needs a real TEE");
  });

  it("accepts the same quote under the root that signed it, so that the refusal is about the root", async () => {
    await requireGenuineQuote(tee, agent.platform.rootDer);
  });

  for (const [name, at] of Object.entries({
    "the measured registers": 48 + 136,
    "the report data": 48 + 520,
    "the quote's signature": QUOTE_SIGNATURE_AT,
    "the attestation key": QUOTE_SIGNATURE_AT + 64,
    "the quoting enclave's report": QE_REPORT_AT + 64,
    "the quoting enclave's signature": QE_REPORT_AT + 384,
  })) {
    it(`refuses a quote with one bit of ${name} changed`, async () => {
      expect(await failureOf(requireGenuineQuote(withByteChanged(at), agent.platform.rootDer))).to.be.instanceOf(
        TeeError,
      );
    });
  }

  it("refuses an agent that returns the same quote to every request", async () => {
    const canned = await tee.quote(Buffer.alloc(64, 1));
    const simulator: TeeSource = {
      ...withByteChanged(0),
      quote: async () => Promise.reject(new Error(`not your report data: ${canned.quote.length}`)),
    };
    expect(await failureOf(requireGenuineQuote(simulator, agent.platform.rootDer)))
      .to.be.instanceOf(TeeError)
      .with.property("message")
      .that.contains("is it a simulator?");
  });
});
