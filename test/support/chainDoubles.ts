/** The keyholder's reads over scripted endpoints. */
import { Chain, type ChainOptions } from "../../executor/chain/chain";
import { keyNamespaceOf } from "../../protocol/namespace";
import type { Address } from "../../protocol/ids";
import { RpcDouble, type World } from "./rpcDouble";

export const CONTRACT = "0x00000000000000000000000000000000000000C0" as Address;
export const NAMESPACE = keyNamespaceOf(31_337n, CONTRACT);

export class ChainDoubles {
  readonly #doubles: RpcDouble[] = [];
  readonly #chains: Chain[] = [];

  async start(world: Partial<World> = {}): Promise<RpcDouble> {
    const started = await RpcDouble.start({ keyNamespace: NAMESPACE, ...world });
    this.#doubles.push(started);
    return started;
  }

  chainOver(endpoints: readonly Pick<RpcDouble, "url">[], options: Partial<ChainOptions> = {}): Chain {
    const chain = new Chain({
      rpcUrls: endpoints.map(({ url }) => url),
      quorum: 1,
      chainId: 31_337n,
      contractAddress: CONTRACT,
      timeoutMs: 5_000,
      maxHeadAgeSeconds: 60,
      ...options,
    });
    this.#chains.push(chain);
    return chain;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#chains.splice(0).map((chain) => chain.close()));
    await Promise.all(this.#doubles.splice(0).map((each) => each.stop()));
  }
}
