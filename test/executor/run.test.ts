/** What runs and what does not: the keyholder's own decisions over a real chain, each seen from outside the process. */
import { expect } from "chai";
import { verifyMessage } from "ethers";
import { PAYERS, TestAccount, TestChain, TestExecutor, registerPayers } from "../support/executor";

const SIGN = `async function main({ pkpId, message }) { return await Actions.signMessage({ pkpId, message }); }`;
const HELLO = `async function main() { return "hello"; }`;

describe("a run", function () {
  this.timeout(60_000);
  let chain: TestChain;
  let executor: TestExecutor;
  let account: TestAccount;
  let pkp: string;

  before(async () => {
    chain = await TestChain.start();
    executor = await TestExecutor.start(chain);
    await registerPayers(chain, executor);
    account = await TestAccount.create(chain, executor);
    pkp = await account.mintPkp();
    await account.addGroup([SIGN, HELLO], [pkp]);
  });
  after(async () => {
    await executor?.stop();
    await chain?.stop();
  });

  it("signs with a PKP the group lists, and the signature recovers to the PKP", async () => {
    const { answer } = await executor.run(account.key, SIGN, { pkpId: pkp, message: "hello" });
    expect(answer?.error).to.equal(undefined);
    expect(verifyMessage("hello", JSON.parse(answer?.response ?? ""))).to.equal(pkp);
  });
});
