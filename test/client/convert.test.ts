/** A conversion is reported as done by what the owner's own provider shows, whatever the service says. */
import { expect } from "chai";
import { randomBytes } from "node:crypto";
import type { HDNodeWallet } from "ethers";
import { ClientError, convertAccount } from "../../client";
import type { ConvertProgress } from "../../client/convert";
import { keyIdOf, type ApiKey } from "../../protocol/ids";
import { connect, startTestChain, type TestChain } from "../support/chain";
import { codeOf } from "../support/owners";

describe("a conversion by a service that lies or falls silent", () => {
  let chain: TestChain;
  let payer: HDNodeWallet;
  before(async () => {
    chain = await startTestChain();
    payer = await chain.wallet();
    await (await chain.contract.addApiPayer(payer.address)).wait();
  });
  after(() => chain.stop());

  async function managedAccount() {
    const apiKey = randomBytes(32).toString("base64") as ApiKey;
    const id = BigInt(keyIdOf(apiKey));
    const wallet = await chain.wallet();
    const contract = chain.contract.connect(payer);
    const made = await contract.newAccount(id, true, "Acme", "", payer.address);
    await made.wait();
    const converted = async (): Promise<string> => {
      const sent = await contract.convertToChainSecuredAccount(id, wallet.address);
      await sent.wait();
      return sent.hash;
    };
    return { apiKey, wallet, converted, made: made.hash };
  }

  function convert(apiKey: string, signer: HDNodeWallet, answer: () => Promise<string | Response>, more: object = {}) {
    const config = {
      contract_address: chain.contractAddress,
      chain_id: 31337,
      typed_data_domain: { name: "Keywright ChainSecured", version: "1", chainId: "31337" },
    };
    const isConversion = (url: unknown): boolean => String(url).endsWith("/convert_to_chain_secured_account");
    return convertAccount({
      ...{ baseUrl: "http://127.0.0.1:1", apiKey, signer, retries: 0, confirmationTimeoutMs: 2_000, ...more },
      fetch: async (url) => {
        if (!isConversion(url)) return Response.json(config);
        const answered = await answer();
        return answered instanceof Response ? answered : Response.json({ success: true, transaction_hash: answered });
      },
    });
  }

  const refusalOf = async (work: Promise<unknown>): Promise<ClientError> =>
    work.then(
      () => Promise.reject(new Error("nothing was refused")),
      (error: unknown) => (error instanceof ClientError ? error : Promise.reject(error as Error)),
    );

  it("is none by the hash of another transaction, or of none", async () => {
    const { apiKey, wallet, made } = await managedAccount();
    const steps: string[] = [];
    const onProgress = ({ step }: ConvertProgress): void => void steps.push(step);
    const { code, facts } = await refusalOf(convert(apiKey, wallet, async () => made, { onProgress }));
    expect([code, facts]).to.deep.equal(["transaction_failed", { transaction_hash: made }]);
    const unknown = `0x${"5e".repeat(32)}`;
    const late = await refusalOf(convert(apiKey, wallet, async () => unknown, { onProgress }));
    expect([late.code, late.facts]).to.deep.equal(["client_timed_out", { transaction_hash: unknown }]);
    expect(steps).to.deep.equal(["signed", "signed"]);
  });

  it("is done once the chain shows it, also to a node that lags behind", async () => {
    const { apiKey, wallet, converted } = await managedAccount();
    const lagging = connect(chain.rpcUrl);
    const call = lagging.call.bind(lagging);
    const before = await call({ to: chain.contractAddress, data: accountOf(apiKey) });
    let stale = 2;
    lagging.call = async (transaction) =>
      transaction.data === accountOf(apiKey) && stale-- > 0 ? before : call(transaction);
    const { answer, owner } = await convert(apiKey, wallet, converted, { provider: lagging });
    expect(await owner.account()).to.include({ managed: false, owner: wallet.address });
    expect(answer).to.include({ success: true });
    lagging.destroy();
  });

  const accountOf = (apiKey: ApiKey): string =>
    chain.contract.interface.encodeFunctionData("getAccount", [keyIdOf(apiKey)]);

  it("is done when the answer alone was lost, and fails as it did when the chain does not show it", async () => {
    const { apiKey, wallet, converted } = await managedAccount();
    const lost = (): Promise<never> => Promise.reject(new Error("socket hang up"));
    expect(await codeOf(convert(apiKey, wallet, lost))).to.equal("network_failed");
    const { answer, owner } = await convert(apiKey, wallet, async () => (await converted(), lost()));
    expect([answer, (await owner.account()).owner]).to.deep.equal([undefined, wallet.address]);
    expect(await codeOf(convert(apiKey, await chain.wallet(), lost))).to.equal("network_failed");
  });

  it("is done when the answer was lost and the next attempt refused", async () => {
    const { apiKey, wallet, converted } = await managedAccount();
    let attempts = 0;
    const answer = async (): Promise<Response> => {
      attempts += 1;
      if (attempts > 1) return Response.json({ code: "queue_full", detail: "full" }, { status: 429 });
      await converted();
      throw new Error("socket hang up");
    };
    expect((await convert(apiKey, wallet, answer, { retries: 1 })).answer).to.equal(undefined);
    expect(attempts).to.equal(2);
  });
});
