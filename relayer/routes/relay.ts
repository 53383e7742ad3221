/** Relays calls signed by owners, so that an owner needs no gas. */
import { KeywrightError } from "../../protocol/errors";
import { checkForward, type ForwardDomain } from "../../protocol/forward";
import { forwarderName } from "../../protocol/serviceName";
import type { Answer, Call, HandlersOf } from "../middleware/call";
import type { RouteDeps } from "./deps";
import { grantSignup } from "./accounts";
import { done, type Writes } from "./writes";

/** Gas limit of a free request that creates an account; further requests are paid from its credit. */
const FREE_GAS = 1_500_000n;

export function relayRoutes(deps: RouteDeps, writes: Writes): HandlersOf<"relay" | "relayNonce"> {
  return {
    relay: (call) => relay(deps, writes, call),
    relayNonce: async ({ query: { address } }) => {
      const [nonce, forwarder] = await Promise.all([deps.chain.forwarderNonce(address), deps.chain.forwarder()]);
      return { address, nonce: String(nonce), forwarder_address: forwarder };
    },
  };
}

async function relay(deps: RouteDeps, writes: Writes, call: Call<"relay">): Promise<Answer<"relay">> {
  const rules = {
    contractAddress: deps.chain.network.contractAddress,
    domain: await forwardDomain(deps),
    nowSeconds: Date.now() / 1000,
  };
  const forwarded = checkForward(call.body, rules);
  if (forwarded.createsAccount) {
    if (BigInt(call.body.gas) > FREE_GAS)
      throw new KeywrightError(
        "invalid_value",
        `A request that makes an account may use ${FREE_GAS} gas; send the rest afterwards.`,
      );
    await call.countAsMint();
  }
  const answer = await writes.relay(call, forwarded, forwarded.createsAccount);
  if (forwarded.createsAccount) await grantSignup(deps, call, forwarded.accountId);
  return { ...done(answer), ...answer.result };
}

export async function forwardDomain({ chain, serviceName }: RouteDeps): Promise<ForwardDomain> {
  return {
    name: forwarderName(serviceName),
    version: "1",
    chainId: BigInt(chain.network.chainId),
    verifyingContract: await chain.forwarder(),
  };
}
