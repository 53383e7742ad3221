/** Relays calls signed by owners, so that an owner needs no gas. */
import { KeywrightError } from "../../protocol/errors";
import { checkForward, type Forwarded, type ForwardDomain } from "../../protocol/forward";
import { forwarderName } from "../../protocol/serviceName";
import type { Address } from "../../protocol/ids";
import type { Answer, Call, HandlersOf } from "../middleware/call";
import { requireUsableOwner } from "../ownership";
import type { RouteDeps } from "./deps";
import { grantSignup } from "./accounts";
import { done, FREE_GAS, type Writes } from "./writes";

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
        `A request that creates an account may use at most ${FREE_GAS} gas; send other calls afterwards.`,
      );
  }
  for (const newOwner of newOwnersIn(forwarded)) await requireUsableOwner(deps, newOwner, call);
  const answer = await writes.relay(call, forwarded, forwarded.createsAccount).catch(async (error: unknown) => {
    if (forwarded.createsAccount && (await isMadeByOther(deps, forwarded, error)))
      await grantSignup(deps, call, forwarded.accountId);
    throw error;
  });
  if (forwarded.createsAccount) await grantSignup(deps, call, forwarded.accountId);
  return { ...done(answer), ...answer.result };
}

const HANDOVERS = ["transferOwnership", "convertToChainSecuredAccount"];

const newOwnersIn = ({ calls }: Forwarded): Address[] =>
  calls.flatMap(({ functionName, args }) => (HANDOVERS.includes(functionName) ? [args[1] as Address] : []));

/** Anyone who sees a signed request may send it first; then the account exists already, owned by the signer. */
async function isMadeByOther(
  { chain }: RouteDeps,
  { accountId, request }: Forwarded,
  error: unknown,
): Promise<boolean> {
  const isMade =
    error instanceof KeywrightError && (error.code === "forward_nonce_used" || error.code === "account_id_taken");
  if (!isMade) return false;
  const account = await chain.account(accountId).catch(() => undefined);
  return account?.owner === request.from;
}

export async function forwardDomain({ chain, serviceName }: RouteDeps): Promise<ForwardDomain> {
  return {
    name: forwarderName(serviceName),
    version: "1",
    chainId: BigInt(chain.network.chainId),
    verifyingContract: await chain.forwarder(),
  };
}
