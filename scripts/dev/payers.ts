/**
 * Registers the executor's payers on a development contract and gives them gas. Against a real network `npm run
 * operator` does it.
 */
import { JsonRpcProvider, Wallet, toBeHex, parseEther } from "ethers";
import { request, Agent } from "undici";
import { EXECUTOR_CALLS, type ExecutorAnswer, type ExecutorCall, type ExecutorRequest } from "../../protocol/executor";
import { AccountManager__factory } from "../../typechain-types";
import { DEVELOPMENT_DEPLOYER_KEY } from "./chain";

const LANE_BALANCE = parseEther("100");
const ADMIN_PAYER_BALANCE = parseEther("10000");

export interface PayerRegistration {
  readonly rpcUrl: string;
  readonly contractAddress: string;
  readonly executorSocket: string;
  readonly payerCount: number;
}

export async function registerPayers({
  rpcUrl,
  contractAddress,
  executorSocket,
  payerCount,
}: PayerRegistration): Promise<void> {
  const { adminPayer, payers } = await callExecutor(executorSocket, "payers", { count: payerCount });
  const provider = new JsonRpcProvider(rpcUrl, undefined, { staticNetwork: true, cacheTimeout: -1 });
  try {
    const admin = new Wallet(DEVELOPMENT_DEPLOYER_KEY, provider);
    const contract = AccountManager__factory.connect(contractAddress, admin);
    let nonce = await admin.getNonce();
    const known = new Set(await contract.apiPayers());
    const grants = payers
      .filter((payer) => !known.has(payer))
      .map((payer) => contract.addApiPayer(payer, { nonce: nonce++ }));
    if ((await contract.adminApiPayer()) !== adminPayer)
      grants.push(contract.setAdminApiPayer(adminPayer, { nonce: nonce++ }));
    for (const sent of await Promise.all(grants)) await sent.wait();
    await Promise.all(payers.map((payer) => provider.send("hardhat_setBalance", [payer, toBeHex(LANE_BALANCE)])));
    await provider.send("hardhat_setBalance", [adminPayer, toBeHex(ADMIN_PAYER_BALANCE)]);
  } finally {
    provider.destroy();
  }
}

/** One call to the executor's socket, answer checked. */
export async function callExecutor<C extends ExecutorCall>(
  socketPath: string,
  call: C,
  body: ExecutorRequest<C>,
): Promise<ExecutorAnswer<C>> {
  const dispatcher = new Agent({ connect: { socketPath } });
  try {
    const response = await request(`http://executor${EXECUTOR_CALLS[call].path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      dispatcher,
    });
    const answer = await response.body.json();
    if (response.statusCode !== 200)
      throw new Error(`the executor answered ${response.statusCode} to ${call}: ${JSON.stringify(answer)}`);
    return EXECUTOR_CALLS[call].answer.parse(answer) as ExecutorAnswer<C>;
  } finally {
    await dispatcher.close();
  }
}
