/**
 * Operations by name for the logged-in caller: with a key over HTTP, with a wallet as a ChainSecured owner. The same
 * names and fields either way.
 */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { JsonRpcProvider, Wallet, type Signer } from "ethers";
import { createClient } from "../api";
import { createChainSecuredClient, type ChainSecuredClient } from "../chainSecured";
import { ClientError, WrongUse, withFacts } from "../errors";
import type { Connection, Made, OperationName } from "../operations";
import type { FlowOptions } from "../ownerFlows";
import { CLIENT_ROUTES, type ClientRoute } from "../routes";
import type { CallOptions } from "../transport";
import type { Settings } from "./config";
import type { Io } from "./io";
import { defined } from "../../protocol/defined";

type Method = (input: unknown, options?: CallOptions) => Promise<unknown>;
const methodOf = (client: object, name: string): Method | undefined => {
  const method = (client as Record<string, unknown>)[name];
  return typeof method === "function" ? (method as Method) : undefined;
};

/** With a shorter one, the service would not give again a secret whose answer was lost. */
const UNGUESSABLE_CHARS = 32;

/** For one request with an effect, which can then be repeated when its answer is lost. */
export interface Repeating {
  /** As given; otherwise one is made and told with the error. */
  readonly idempotencyKey: string | undefined;
}

export async function connect(settings: Settings, io: Io, repeating?: Repeating): Promise<Connection> {
  if (settings.wallet !== undefined && repeating?.idempotencyKey !== undefined)
    throw new WrongUse("--idempotency-key is for requests with a key: a wallet sends transactions.");
  if ((repeating?.idempotencyKey?.length ?? UNGUESSABLE_CHARS) < UNGUESSABLE_CHARS)
    throw new WrongUse(`--idempotency-key needs at least ${UNGUESSABLE_CHARS} random characters. Nothing was sent.`);
  if (settings.wallet !== undefined) return walletConnection(settings, await openWallet(settings.wallet, io));
  const { url: baseUrl, insecure, apiKey } = settings;
  const client = createClient({ baseUrl, insecure, ...defined({ apiKey }) });
  return {
    call: (name, input) => {
      const method = methodOf(client, name);
      if (method === undefined) throw new ClientError("invalid_argument", `There is no operation ${name}.`);
      const { effect }: ClientRoute = CLIENT_ROUTES[name];
      if (effect !== true || repeating === undefined) return method(input);
      return repeatable(method, input, repeating.idempotencyKey, apiKey !== undefined);
    },
    close: () => undefined,
  };
}

/**
 * Whoever sends the same request under the same idempotency key gets the same answer. So the key is told only where a
 * credential is needed beside it.
 */
async function repeatable(
  method: Method,
  input: unknown,
  given: string | undefined,
  hasCredential: boolean,
): Promise<unknown> {
  const idempotencyKey = given ?? randomBytes(16).toString("hex");
  return method(input, { idempotencyKey }).catch((error: unknown) => {
    const isUnknown = error instanceof ClientError && (error.retryable || UNKNOWN.has(error.code));
    throw isUnknown && hasCredential ? withFacts(error, { idempotency_key: idempotencyKey }) : error;
  });
}
/** Besides what is retryable: the request may have taken effect, or an earlier attempt of it. */
const UNKNOWN: ReadonlySet<string> = new Set(["unexpected_answer", "idempotency_in_progress"]);

/** Operations that are one request in API mode and one multi-step SDK call for owners. */
type Flow = (client: ChainSecuredClient, input: never, made: Made | undefined) => Promise<unknown>;
const FLOWS: Partial<Record<OperationName, Flow>> = {
  newAccount: (client, input) => client.createAccount(input),
  createWallet: (client, input) => client.createPkp(input),
  updateWallet: (client, input) => client.updatePkp(input),
  addUsageApiKey: (client, input, made) => client.createUsageKey(input, tellMinted(made)),
  createTrigger: (client, input, made) => client.createTrigger(input, tellMinted(made)),
  deleteTrigger: async (client, input) => client.deleteTrigger(await client.getTrigger(input)),
};

const tellMinted = (made: Made | undefined): FlowOptions<object> => ({
  onProgress: (progress) => {
    if (progress.step !== "minted") return;
    const { minted, usage_api_key } = progress;
    made?.({ ...minted, ...defined({ usage_api_key }) });
  },
});

const ONLY_KEYS =
  "This is done with a key, not with a wallet: set KEYWRIGHT_API_KEY to a usage key of the account, which keywright " +
  "key create makes, and KEYWRIGHT_URL in place of --profile.";

/** The owner's client; the service must name the contract and the chain that the login has. */
export function openOwner({ url, insecure, wallet }: Settings, signer: Signer): Promise<ChainSecuredClient> {
  return createChainSecuredClient({
    baseUrl: url,
    insecure,
    signer,
    ...defined({ accountId: wallet?.account_id }),
    expect: defined({
      contractAddress: wallet?.contract_address,
      chainId: wallet?.chain_id === undefined ? undefined : BigInt(wallet.chain_id),
    }),
  });
}

async function walletConnection(settings: Settings, signer: Signer): Promise<Connection> {
  const { url, insecure } = settings;
  const owner = await openOwner(settings, signer);
  const open = createClient({ baseUrl: url, insecure });
  return {
    call: (name, input, made) => {
      const flow = FLOWS[name];
      if (flow !== undefined) return flow(owner, input as never, made);
      const method = methodOf(owner, name) ?? methodOf(open, name);
      if (method === undefined)
        throw new ClientError("invalid_argument", `There is no operation ${name} for a wallet.`);
      return method(input).catch((error: unknown) => {
        const isForKeys = error instanceof ClientError && error.code === "missing_credential";
        throw isForKeys ? new ClientError(error.code, ONLY_KEYS) : error;
      });
    },
    close: () => (signer.provider as JsonRpcProvider | null)?.destroy(),
  };
}

export async function openWallet(
  { wallet_file, rpc_url, password }: NonNullable<Settings["wallet"]>,
  io: Io,
): Promise<Signer> {
  const text = readWalletFile(wallet_file);
  const provider = new JsonRpcProvider(rpc_url, undefined, {
    staticNetwork: true,
    cacheTimeout: -1,
    pollingInterval: 500,
  });
  try {
    const wallet = await Wallet.fromEncryptedJson(text, password ?? (await io.secret("Password of the wallet: ")));
    return wallet.connect(provider);
  } catch (error) {
    provider.destroy();
    if (error instanceof WrongUse) throw error;
    // The library's message may contain the attempted password.
    throw new WrongUse("The wallet could not be opened: wrong password, or no encrypted JSON wallet.");
  }
}

export function readWalletFile(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    throw new WrongUse(`The wallet file ${file} cannot be read.`);
  }
}
