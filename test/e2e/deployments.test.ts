/** The committed file of the development network equals what a deployment of these sources writes, on any machine. */
import { expect } from "chai";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { id } from "ethers";
import { composeHash } from "../../protocol/attestation";
import { writeDeployment } from "../../scripts/deployment";
import { startChain } from "../../scripts/dev/chain";
import { ensureAllowlist, ensureDeployment } from "../../scripts/dev/localDeployment";
import { freePort } from "../../scripts/dev/ports";
import { defaultAppCompose } from "../../scripts/dev/tee/appCompose";

/** Each development network has a root of its own; the file shows the form. */
const SAMPLE_ROOT_COMMITMENT = id("a sample root key");

describe("deployments/localhost.json", () => {
  it(
    "is fresh (KEYWRIGHT_UPDATE=1 writes it): address, arguments, ABI and key namespace are those of a new " +
      "development chain",
    async () => {
      const { rpcUrl, process: node } = await startChain({ port: await freePort() });
      const folder = mkdtempSync(join(tmpdir(), "keywright-deployment-"));
      const path = join(__dirname, "../../deployments/localhost.json");
      try {
        const made = join(folder, "deployment.json");
        const allowlist = await ensureAllowlist(rpcUrl, made, `0x${composeHash(defaultAppCompose())}`);
        const deployment = await ensureDeployment(rpcUrl, made, async () => SAMPLE_ROOT_COMMITMENT, allowlist);
        if (process.env["KEYWRIGHT_UPDATE"] === "1") writeDeployment(path, deployment);
        expect(JSON.parse(readFileSync(path, "utf8"))).to.deep.equal(deployment);
      } finally {
        await node.stop();
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );
});
