/**
 * The contract is bound to the root of its keys. After the TEE's key management has rotated its keys, nothing is served
 * under another root.
 */
import { expect } from "chai";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AccountManager__factory } from "../../typechain-types";
import { startStack } from "../../scripts/dev/stack";
import { connect } from "../support/chain";

const COMMITMENT = /0x[0-9a-f]{64}/g;

describe("a rotated root key", function () {
  this.timeout(120_000);
  const dataDir = mkdtempSync(join(tmpdir(), "keywright-root-"));
  after(() => rmSync(dataDir, { recursive: true, force: true }));

  const committed = async (keyEpoch: number): Promise<string> => {
    const stack = await startStack({ dataDir, keyEpoch });
    const provider = connect(stack.rpcUrl);
    try {
      const stored = await AccountManager__factory.connect(stack.contractAddress, provider).rootCommitment();
      const info = (await (await fetch(`${stack.baseUrl}/info`)).json()) as {
        root_commitment: string;
        config: { root: { commitment: string } };
      };
      expect([info.root_commitment, info.config.root.commitment]).to.deep.equal([stored, stored]);
      return stored;
    } finally {
      provider.destroy();
      await stack.stop();
    }
  };

  it("stops the keyholder with a sentence that names both and the runbook; the old root serves again", async () => {
    const stored = await committed(1);
    const refusal = await committed(2).then(
      () => "served",
      (error: unknown) => String(error),
    );
    expect(refusal).to.contain("is bound to the root with the commitment " + stored);
    expect(refusal).to.contain("docs/operations.md#the-keyholder-has-another-root");
    expect(new Set(refusal.match(COMMITMENT)).size, refusal).to.equal(2);
    expect(await committed(1)).to.equal(stored);
  });
});
