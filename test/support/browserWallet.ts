/**
 * A wallet extension as pages see it (EIP-6963, EIP-1193) that really signs with a key of the development chain. Its
 * user can be set to refuse.
 */
import type { HDNodeWallet, JsonRpcProvider } from "ethers";
import type { Page } from "playwright-core";
import { fundedWallet } from "./chain";

const REFUSED = { code: 4001, message: "User rejected the request." };
/** Methods answered by the wallet without its node. */
const OF_ITS_OWN = new Set(["eth_accounts", "eth_requestAccounts", "eth_chainId", "eth_signTypedData_v4"]);
const ASKS_THE_USER = new Set([
  "eth_requestAccounts",
  "eth_signTypedData_v4",
  "eth_sendTransaction",
  "wallet_switchEthereumChain",
]);

export class BrowserWallet {
  /** Methods the user refuses from now on. */
  readonly refused = new Set<string>();
  /** The prompts shown to the user, in order. */
  readonly asked: string[] = [];
  /** Methods whose prompt its user leaves open until `release`. */
  readonly #held = new Set<string>();
  #released = Promise.withResolvers<unknown>();
  /** Shows pages no account until its user is asked for one. */
  locked = false;
  /** Methods that the wallet's node answers with null, as if no block had a transaction. */
  readonly unknown = new Set<string>();
  /** Whether the wallet's node cannot be reached. */
  offline = false;
  readonly #wallet: HDNodeWallet;
  #chainId: bigint;

  constructor(
    readonly name: string,
    wallet: HDNodeWallet,
    chainId: bigint,
  ) {
    this.#wallet = wallet;
    this.#chainId = chainId;
  }

  /** A wallet with a new key that has ether on the chain of this provider. */
  static async funded(provider: JsonRpcProvider, { name = "Test Wallet", ether = "10", chainId = 31_337n } = {}) {
    return new BrowserWallet(name, await fundedWallet(provider, ether), chainId);
  }

  get address(): string {
    return this.#wallet.address;
  }

  /** Switches the chain in the wallet itself. */
  moveTo(chainId: bigint): void {
    this.#chainId = chainId;
  }

  hold(method: string): void {
    this.#held.add(method);
    this.#released = Promise.withResolvers();
  }

  release(): void {
    this.#held.clear();
    this.#released.resolve(undefined);
  }

  async install(page: Page): Promise<void> {
    const binding = `wallet_${this.name.replace(/\W/g, "")}`;
    await page.exposeFunction(binding, (method: string, params: unknown[]) => this.#answer(method, params));
    await page.addInitScript(announce, { name: this.name, binding });
  }

  async #answer(method: string, params: unknown[]): Promise<{ result?: unknown; error?: unknown }> {
    if (ASKS_THE_USER.has(method)) this.asked.push(method);
    if (this.#held.has(method)) await this.#released.promise;
    if (this.refused.has(method)) return { error: REFUSED };
    if (this.unknown.has(method)) return { result: null };
    if (this.offline && !OF_ITS_OWN.has(method)) return { error: { code: -32603, message: "Failed to fetch" } };
    try {
      return { result: await this.#do(method, params) };
    } catch (error) {
      const { info, message } = error as { info?: { error?: unknown }; message: string };
      return { error: info?.error ?? { code: -32000, message } };
    }
  }

  async #do(method: string, params: unknown[]): Promise<unknown> {
    const provider = this.#wallet.provider as unknown as { send(method: string, params: unknown[]): Promise<unknown> };
    switch (method) {
      case "eth_requestAccounts":
        this.locked = false;
        return [this.#wallet.address];
      case "eth_accounts":
        return this.locked ? [] : [this.#wallet.address];
      case "eth_chainId":
        return `0x${this.#chainId.toString(16)}`;
      case "wallet_switchEthereumChain":
        this.#chainId = BigInt((params[0] as { chainId: string }).chainId);
        return null;
      case "eth_signTypedData_v4": {
        const { types, domain, primaryType, message } = JSON.parse(String(params[1]));
        return this.#wallet.signTypedData(domain, { [primaryType]: types[primaryType] }, message);
      }
      case "eth_sendTransaction": {
        const { to, data } = params[0] as { to: string; data: string };
        return (await this.#wallet.sendTransaction({ to, data })).hash;
      }
      default:
        return provider.send(method, params);
    }
  }
}

/** Runs in the page before its own scripts. */
function announce({ name, binding }: { name: string; binding: string }): void {
  const page = globalThis as unknown as EventTarget &
    Record<string, (method: string, params: unknown[]) => Promise<{ result?: unknown; error?: { message: string } }>>;
  const provider = {
    request: async ({ method, params = [] }: { method: string; params?: unknown[] }) => {
      const { result, error } = (await page[binding]?.(method, params)) ?? {};
      if (error !== undefined) throw Object.assign(new Error(error.message), error);
      return result;
    },
    on: () => undefined,
    removeListener: () => undefined,
  };
  const icon =
    "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'><circle cx='4' cy='4' r='4'/></svg>";
  const detail = Object.freeze({
    info: { uuid: `00000000-0000-4000-8000-${String(name.length).padStart(12, "0")}`, name, icon, rdns: "test.wallet" },
    provider,
  });
  const tell = (): boolean => page.dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
  page.addEventListener("eip6963:requestProvider", tell);
  tell();
}
