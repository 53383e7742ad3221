/** PKPs as an EIP-1193 provider: what wallets of browsers are to an application. */
import {
  InvalidParamsRpcError,
  SwitchChainError,
  UnauthorizedProviderError,
  UnsupportedProviderMethodError,
  UserRejectedRequestError,
  createClient,
  createWalletClient,
  getAddress,
  http,
  isHex,
  numberToHex,
  type Address,
  type Chain,
  type Hex,
  type LocalAccount,
  type Transport,
  type WalletClient,
} from "viem";
import { ClientError } from "../errors";
import { toKeywrightAccount, type PkpOptions } from "../viem";

/** A method and its parameters, as EIP-1193 has them. */
export interface ProviderRequest {
  readonly method: string;
  readonly params?: unknown;
}

export interface ProviderOptions extends Omit<PkpOptions, "pkpId"> {
  /** Addresses of the PKPs; the first one is the current account. */
  readonly pkpIds: readonly [string, ...string[]];
  /** The chains it can be on, as of `viem/chains`; it starts on the first one. */
  readonly chains: readonly [Chain, ...Chain[]];
  /** How each chain is reached, by chain id; default: the chain's own http address. */
  readonly transports?: Readonly<Record<number, Transport>> | undefined;
  /**
   * Asked before anything is signed: false refuses it (4001). Every script of a page can use what the page announces,
   * and only the PKP's groups and this stand between. The request is a copy, and it and a transaction's chain are what
   * is signed, whatever the page changes meanwhile.
   */
  readonly approve?: (request: ProviderRequest, chain: Chain) => boolean | Promise<boolean>;
}

/** The events of EIP-1193 that it emits. */
export interface ProviderEvents {
  connect: { readonly chainId: Hex };
  disconnect: Error;
  accountsChanged: readonly Address[];
  chainChanged: Hex;
}
type Listener<Name extends keyof ProviderEvents> = (event: ProviderEvents[Name]) => void;

export interface KeywrightProvider {
  /**
   * Signing methods run an action for the PKP, account methods are answered here, and all others of a node go to the
   * chain's. Refusals have the numeric codes of EIP-1193; what the service refuses is a ClientError.
   */
  request(request: ProviderRequest): Promise<unknown>;
  on<Name extends keyof ProviderEvents>(event: Name, listener: Listener<Name>): void;
  removeListener<Name extends keyof ProviderEvents>(event: Name, listener: Listener<Name>): void;
}

/** @throws ClientError `invalid_argument` when a PKP is no address, or there is no chain. */
export function keywrightProvider(options: ProviderOptions): KeywrightProvider {
  const { pkpIds, chains, transports = {}, approve = () => true, ...rest } = options;
  const accounts = new Map(
    pkpIds.map((pkpId) => toKeywrightAccount({ ...rest, pkpId })).map((one) => [one.address, one]),
  );
  if (accounts.size === 0 || chains.length === 0)
    throw new ClientError("invalid_argument", "The provider needs a PKP and a chain.");
  const events = eventsOf();
  const { emit } = events;
  const nonces = new Map<string, Nonces>();
  const state: State = { accounts, chain: chains[0], isConnected: false, chains, transports, nonces, emit };
  return {
    on: events.on,
    removeListener: events.removeListener,
    request: async (asked) => {
      const request = copyOf(asked);
      const { method, params = [] } = request;
      const given: readonly unknown[] = Array.isArray(params) ? params : [params];
      const ask = WALLET[method];
      if (ask !== undefined) return ask(state, given);
      const sign = SIGNING[method];
      if (sign === undefined) return askNode(state, method, given);
      const { chain } = state;
      const signing = sign(state, given);
      if (!(await approve(request, chain)))
        throw new UserRejectedRequestError(new Error("The request was not approved."));
      return signing();
    },
  };
}

/** The page must not change what it asked for after it was approved. */
function copyOf({ method, params }: ProviderRequest): ProviderRequest {
  try {
    return structuredClone({ method, params });
  } catch {
    // Proxies, for example of Vue or MobX, are not cloned.
    return jsonCopyOf({ method, params });
  }
}

function jsonCopyOf(request: ProviderRequest): ProviderRequest {
  try {
    return JSON.parse(JSON.stringify(request)) as ProviderRequest;
  } catch {
    throw invalid("A request is plain data.");
  }
}

/** Of one address on one chain. */
interface Nonces {
  /** Ends with the request before. */
  before: Promise<unknown>;
  /** A node may not count yet what it was just sent. */
  lastSent: number;
  sentAtMs: number;
}

/** What a node does not count after so long was dropped: its nonce is free again. */
const COUNTED_WITHIN_MS = 60_000;

interface State {
  readonly nonces: Map<string, Nonces>;
  readonly accounts: ReadonlyMap<Address, LocalAccount>;
  readonly chains: ProviderOptions["chains"];
  readonly transports: Readonly<Record<number, Transport>>;
  readonly emit: <Name extends keyof ProviderEvents>(event: Name, value: ProviderEvents[Name]) => void;
  chain: Chain;
  isConnected: boolean;
}
type Params = readonly unknown[];

const addressesOf = ({ isConnected, accounts }: State): Address[] => (isConnected ? [...accounts.keys()] : []);
const PERMISSION = [{ parentCapability: "eth_accounts" }];

function connect(state: State): Address[] {
  if (!state.isConnected) {
    state.isConnected = true;
    state.emit("connect", { chainId: numberToHex(state.chain.id) });
    state.emit("accountsChanged", addressesOf(state));
  }
  return addressesOf(state);
}

/** Answered without the service or a node. */
const WALLET: Readonly<Record<string, (state: State, params: Params) => unknown>> = {
  eth_accounts: addressesOf,
  eth_requestAccounts: connect,
  eth_coinbase: (state) => addressesOf(state)[0] ?? null,
  eth_chainId: ({ chain }) => numberToHex(chain.id),
  net_version: ({ chain }) => String(chain.id),
  wallet_getPermissions: ({ isConnected }) => (isConnected ? PERMISSION : []),
  wallet_requestPermissions: (state) => {
    connect(state);
    return PERMISSION;
  },
  wallet_revokePermissions: (state) => {
    state.isConnected = false;
    state.emit("accountsChanged", []);
    return null;
  },
  wallet_switchEthereumChain: (state, [given]) => {
    const { chainId } = (given ?? {}) as { chainId?: unknown };
    const chain = state.chains.find(({ id }) => isQuantity(chainId) && id === Number(chainId));
    if (chain === undefined) throw new SwitchChainError(new Error(`This provider has no chain ${String(chainId)}.`));
    if (chain.id !== state.chain.id) {
      state.chain = chain;
      state.emit("chainChanged", numberToHex(chain.id));
    }
    return null;
  },
};

const isQuantity = (value: unknown): value is string | number => typeof value === "string" || typeof value === "number";

/** What signs: checked first, done once it is approved. */
const SIGNING: Readonly<Record<string, (state: State, params: Params) => () => Promise<unknown>>> = {
  personal_sign: (state, [first, second]) => {
    // Some libraries have the two in the other order.
    const [data, from] = isOneOf(state, second) ? [first, second] : [second, first];
    const account = accountOf(state, from);
    if (typeof data !== "string") throw invalid("personal_sign takes a message and an address.");
    return () => account.signMessage({ message: isHex(data) ? { raw: data } : data });
  },
  eth_signTypedData_v4: (state, [from, data]) => {
    const account = accountOf(state, from);
    const parsed = typedDataOf(data);
    requireChain(state, "typed data", parsed.domain?.chainId);
    return () => account.signTypedData(parsed);
  },
  eth_signTransaction: (state, [given]) => {
    const { client, request } = transactionOf(state, given);
    return () =>
      inTurn(state, client, async (next) => {
        const nonce = request.nonce ?? (await next());
        return client.signTransaction(await client.prepareTransactionRequest({ ...request, nonce } as typeof request));
      });
  },
  eth_sendTransaction: (state, [given]) => {
    const { client, request } = transactionOf(state, given);
    return () =>
      inTurn(state, client, async (next, nonces) => {
        if (request.nonce !== undefined) return client.sendTransaction(request);
        const nonce = await next();
        const hash = await client.sendTransaction({ ...request, nonce } as typeof request);
        Object.assign(nonces, { lastSent: nonce, sentAtMs: Date.now() });
        return hash;
      });
  },
};

/**
 * One after the other, so that each has the nonce after those that were sent. What failed on the way leaves no gap:
 * behind one, later transactions would wait, and all be paid when it is filled.
 */
function inTurn<T>(
  { nonces }: State,
  { account: { address }, chain, request }: TransactionClient,
  use: (next: () => Promise<number>, nonces: Nonces) => Promise<T>,
): Promise<T> {
  const name = `${address} ${chain.id}`;
  const own = nonces.get(name) ?? { before: Promise.resolve(), lastSent: -1, sentAtMs: 0 };
  nonces.set(name, own);
  const next = async (): Promise<number> => {
    const counting = { method: "eth_getTransactionCount", params: [address, "pending"] };
    const counted: unknown = await request(counting as never);
    const isRecent = Date.now() - own.sentAtMs < COUNTED_WITHIN_MS;
    return isRecent ? Math.max(Number(counted), own.lastSent + 1) : Number(counted);
  };
  const turn = own.before.then(() => use(next, own));
  own.before = turn.catch(() => undefined);
  return turn;
}

const isOneOf = ({ accounts }: State, value: unknown): boolean =>
  typeof value === "string" && /^0x[0-9a-fA-F]{40}$/.test(value) && accounts.has(getAddress(value));

function accountOf(state: State, from: unknown): LocalAccount {
  const account = isOneOf(state, from) ? state.accounts.get(getAddress(from as string)) : undefined;
  if (account === undefined || !state.isConnected)
    throw new UnauthorizedProviderError(
      new Error("Ask for eth_requestAccounts, and sign for one of the accounts that it gives."),
    );
  return account;
}

const invalid = (message: string): Error => new InvalidParamsRpcError(new Error(message));

function typedDataOf(data: unknown): Parameters<LocalAccount["signTypedData"]>[0] {
  try {
    const parsed: unknown = typeof data === "string" ? JSON.parse(data) : data;
    if (typeof parsed === "object" && parsed !== null && "types" in parsed && "primaryType" in parsed)
      return parsed as Parameters<LocalAccount["signTypedData"]>[0];
  } catch {
    // Reported below.
  }
  throw invalid("eth_signTypedData_v4 takes an address and typed data, as JSON or its text.");
}

const WHOLE_NUMBER = /^(0x[0-9a-fA-F]+|[0-9]+)$/;

/** What names a chain is for the one that the user sees, and that `approve` is told. */
function requireChain({ chain }: State, what: string, chainId: unknown): void {
  if (chainId === undefined) return;
  const isNumber = isQuantity(chainId) || typeof chainId === "bigint";
  if (!isNumber || !WHOLE_NUMBER.test(String(chainId)) || BigInt(chainId) !== BigInt(chain.id))
    throw invalid(`The ${what} is for chain ${String(chainId)}, and the provider is on chain ${chain.id}.`);
}

const transportOf = ({ transports }: State, { id }: Chain): Transport => transports[id] ?? http();

const WHOLE = ["gas", "gasPrice", "maxFeePerGas", "maxPriorityFeePerGas", "maxFeePerBlobGas", "value"] as const;

const NOT_SIGNED = ["authorizationList", "blobVersionedHashes", "blobs", "sidecars"] as const;

/** Fields as JSON-RPC has them, in viem's types. What is missing is filled in from the chain. */
function transactionOf(state: State, given: unknown): { client: TransactionClient; request: TransactionRequest } {
  if (typeof given !== "object" || given === null) throw invalid("A transaction is an object.");
  const { from, to, data, input, nonce, chainId, accessList, ...rest } = given as Record<string, unknown>;
  const unknown = NOT_SIGNED.find((name) => rest[name] !== undefined);
  if (unknown !== undefined) throw invalid(`This provider signs no transaction with ${unknown}: use keywright/viem.`);
  if (data !== undefined && input !== undefined && data !== input) throw invalid("data and input differ.");
  const account = accountOf(state, from);
  const { chain } = state;
  requireChain(state, "transaction", chainId);
  const amounts = WHOLE.flatMap((name) => (rest[name] === undefined ? [] : [[name, wholeOf(rest[name], name)]]));
  const others = Object.entries({ to, data: data ?? input, accessList }).filter(([, one]) => one !== undefined);
  const request = {
    ...Object.fromEntries([...amounts, ...others]),
    ...(nonce === undefined ? {} : { nonce: Number(wholeOf(nonce, "nonce")) }),
  };
  const client = createWalletClient({ account, chain, transport: transportOf(state, chain) });
  return { client, request: request as TransactionRequest };
}
type TransactionClient = WalletClient<Transport, Chain, LocalAccount>;
type TransactionRequest = Parameters<TransactionClient["sendTransaction"]>[0] & { readonly nonce?: number };

function wholeOf(value: unknown, name: string): bigint {
  if (isQuantity(value) && WHOLE_NUMBER.test(String(value))) return BigInt(value);
  throw invalid(`${name} must be a whole number as 0x hex.`);
}

/** Methods of a node; never those with which a node or another wallet would sign. */
const NODES_OWN = /^(eth|net|web3)_/;
const SIGNS = /sign|encrypt|decrypt|accounts/i;

async function askNode(state: State, method: string, params: Params): Promise<unknown> {
  if (!NODES_OWN.test(method) || SIGNS.test(method))
    throw new UnsupportedProviderMethodError(new Error(`This provider has no method ${method}.`));
  const { chain } = state;
  const { request } = createClient({ chain, transport: transportOf(state, chain) });
  return request({ method, params } as never);
}

function eventsOf(): Pick<State, "emit"> & Pick<KeywrightProvider, "on" | "removeListener"> {
  const listeners = new Map<string, Set<(event: never) => void>>();
  return {
    emit: (event, value) => {
      for (const listener of [...(listeners.get(event) ?? [])]) listener(value as never);
    },
    on: (event, listener) => {
      listeners.set(event, (listeners.get(event) ?? new Set()).add(listener));
    },
    removeListener: (event, listener) => void listeners.get(event)?.delete(listener),
  };
}
