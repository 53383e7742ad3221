/** A connector for wagmi: PKPs in the list of wallets of an application. */
import { SwitchChainError, getAddress, numberToHex, type Address, type Chain, type Transport } from "viem";
import { keywrightProvider, type KeywrightProvider, type ProviderOptions } from "./eip1193";
import { ICON, NAME, type ProviderInfo } from "./announce";

/** Chains and transports are those of wagmi's own configuration. */
export interface ConnectorOptions
  extends Omit<ProviderOptions, "chains" | "transports">, Pick<ProviderInfo, "name" | "icon"> {
  /** Default: keywright. */
  readonly id?: string;
}

/** What wagmi gives to a connector, by shape: its types need no copy of wagmi. */
interface WagmiConfig {
  readonly chains: ProviderOptions["chains"];
  readonly transports?: Readonly<Record<number, Transport>> | undefined;
  readonly emitter: {
    emit(event: "change", data: { accounts?: readonly Address[]; chainId?: number }): unknown;
    emit(event: "disconnect"): unknown;
  };
}

type Accounts<Detailed> = Detailed extends true
  ? readonly { address: Address; capabilities: Record<string, unknown> }[]
  : readonly Address[];

/** A type and no interface: wagmi's connectors may have any further members, which interfaces never fit. */
export type KeywrightConnector = {
  readonly id: string;
  readonly name: string;
  readonly icon: string;
  readonly type: string;
  connect<Detailed extends boolean = false>(parameters?: {
    chainId?: number | undefined;
    isReconnecting?: boolean | undefined;
    withCapabilities?: Detailed | boolean | undefined;
  }): Promise<{ accounts: Accounts<Detailed>; chainId: number }>;
  disconnect(): Promise<void>;
  getAccounts(): Promise<readonly Address[]>;
  getChainId(): Promise<number>;
  getProvider(): Promise<KeywrightProvider>;
  isAuthorized(): Promise<boolean>;
  switchChain(parameters: { chainId: number }): Promise<Chain>;
  onAccountsChanged(accounts: string[]): void;
  onChainChanged(chainId: string): void;
  onDisconnect(): void;
};

/** For `connectors` of wagmi's `createConfig`. */
export function keywrightConnector({
  id = "keywright",
  name = NAME,
  icon = ICON,
  ...options
}: ConnectorOptions): (config: WagmiConfig) => KeywrightConnector {
  return ({ chains, transports, emitter }) => {
    const provider = keywrightProvider({ ...options, chains, transports });
    const accounts = async (method = "eth_accounts"): Promise<readonly Address[]> =>
      (await provider.request({ method })) as readonly Address[];
    const onAccountsChanged = (given: readonly string[]): void => {
      if (given.length > 0) emitter.emit("change", { accounts: given.map((one) => getAddress(one)) });
      else emitter.emit("disconnect");
    };
    const onChainChanged = (chainId: string): void => void emitter.emit("change", { chainId: Number(chainId) });
    const getChainId = async (): Promise<number> => Number(await provider.request({ method: "eth_chainId" }));
    const switchChain = async ({ chainId }: { chainId: number }): Promise<Chain> => {
      const chain = chains.find((one) => one.id === chainId);
      if (chain === undefined) throw new SwitchChainError(new Error(`There is no chain ${chainId} in the config.`));
      await provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId: numberToHex(chainId) }] });
      return chain;
    };
    const stop = (): void => {
      provider.removeListener("accountsChanged", onAccountsChanged);
      provider.removeListener("chainChanged", onChainChanged);
    };
    return {
      id,
      name,
      icon,
      type: "keywright",
      connect: async ({ chainId, withCapabilities } = {}) => {
        const given = await accounts("eth_requestAccounts");
        stop();
        provider.on("accountsChanged", onAccountsChanged);
        provider.on("chainChanged", onChainChanged);
        if (chainId !== undefined) await switchChain({ chainId });
        const shown = withCapabilities === true ? given.map((address) => ({ address, capabilities: {} })) : given;
        return { accounts: shown as never, chainId: await getChainId() };
      },
      disconnect: async () => {
        stop();
        await provider.request({ method: "wallet_revokePermissions", params: [{ eth_accounts: {} }] });
      },
      getAccounts: () => accounts(),
      getChainId,
      getProvider: async () => provider,
      isAuthorized: async () => (await accounts()).length > 0,
      switchChain,
      onAccountsChanged,
      onChainChanged,
      onDisconnect: () => void emitter.emit("disconnect"),
    };
  };
}
