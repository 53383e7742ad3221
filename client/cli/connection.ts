/**
 * Operations by name for the logged-in caller: with a key over HTTP, with a wallet as a ChainSecured owner. The same
 * names and fields either way.
 */
import { readFileSync } from "node:fs";
import { JsonRpcProvider, Wallet, type Signer } from "ethers";
import { createClient } from "../api";
import { createChainSecuredClient, type ChainSecuredClient } from "../chainSecured";
import { ClientError, WrongUse } from "../errors";
import type { Connection, OperationName } from "../operations";
import type { Settings } from "./config";
import type { Io } from "./io";
import { defined } from "../../protocol/defined";

type Method = (input: unknown) => Promise<unknown>;
const methodOf = (client: object, name: string): Method | undefined => {
  const method = (client as Record<string, unknown>)[name];
  return typeof method === "function" ? (method as Method) : undefined;
};

export async function connect(settings: Settings, io: Io): Promise<Connection> {
  if (settings.wallet !== undefined) return walletConnection(settings, await openWallet(settings.wallet, io));
  const { url: baseUrl, insecure, apiKey } = settings;
  const client = createClient({ baseUrl, insecure, ...defined({ apiKey }) });
  return {
    call: (name, input) => {
      const method = methodOf(client, name);
      if (method === undefined) throw new ClientError("invalid_argument", `There is no operation ${name}.`);
      return method(input);
    },
    close: () => undefined,
  };
}

/** Operations that are one request in API mode and one multi-step SDK call for owners. */
const FLOWS: Partial<Record<OperationName, (client: ChainSecuredClient, input: never) => Promise<unknown>>> = {
  newAccount: (client, input) => client.createAccount(input),
  createWallet: (client, input) => client.createPkp(input),
  updateWallet: (client, input) => client.updatePkp(input),
  addUsageApiKey: (client, input) => client.createUsageKey(input),
  deleteTrigger: async (client, input) => client.deleteTrigger(await client.getTrigger(input)),
};

const ONLY_KEYS =
  "This is done with a key, not with a wallet: set KEYWRIGHT_API_KEY to a usage key of the account, which keywright " +
  "key create makes, and KEYWRIGHT_URL in place of --profile.";

async function walletConnection({ url, insecure, wallet }: Settings, signer: Signer): Promise<Connection> {
  const owner = await createChainSecuredClient({
    baseUrl: url,
    insecure,
    signer,
    ...defined({ accountId: wallet?.account_id }),
  });
  const open = createClient({ baseUrl: url, insecure });
  return {
    call: (name, input) => {
      const flow = FLOWS[name];
      if (flow !== undefined) return flow(owner, input as never);
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
