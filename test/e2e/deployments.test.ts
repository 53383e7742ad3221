/** The committed file of the development network equals what a deployment of these sources writes, on any machine. */
import { expect } from "chai";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Wallet } from "ethers";
import { deployAccountManager, writeDeployment } from "../../scripts/deployment";
import { DEVELOPMENT_DEPLOYER_KEY, startChain } from "../../scripts/dev/chain";
import { freePort } from "../../scripts/dev/ports";
import { connect } from "../support/chain";

describe("deployments/localhost.json", () => {
  it(
    "is fresh (KEYWRIGHT_UPDATE=1 writes it): address, arguments, ABI and key namespace are those of a new " +
      "development chain",
    async () => {
      const { rpcUrl, process: node } = await startChain({ port: await freePort() });
      const provider = connect(rpcUrl);
      const deployer = new Wallet(DEVELOPMENT_DEPLOYER_KEY, provider);
      const made = await deployAccountManager(deployer, "localhost", {
        admin: deployer.address,
        payerDelaySeconds: 0,
      }).finally(async () => {
        provider.destroy();
        await node.stop();
      });
      const path = join(__dirname, "../../deployments/localhost.json");
      if (process.env["KEYWRIGHT_UPDATE"] === "1") writeDeployment(path, made.deployment);
      const file = JSON.parse(readFileSync(path, "utf8")) as unknown;
      expect(file).to.deep.equal(made.deployment);
    },
  );
});
