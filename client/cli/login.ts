/**
 * `keywright login` and `logout`: checks a key or a wallet file, then stores it in a file readable only by its owner.
 */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import type { JsonRpcProvider } from "ethers";
import { createClient } from "../api";
import { ClientError, WrongUse } from "../errors";
import {
  DEFAULT_URL,
  credentialsFile,
  isInsecure,
  originOf,
  profileName,
  readProfiles,
  removeProfile,
  requireNoOtherKey,
  writeProfile,
  type Profile,
} from "./config";
import { openOwner, openWallet } from "./connection";
import { withProgress } from "./io";
import type { Context } from "./context";
import { defined } from "../../protocol/defined";

interface LoginOptions {
  readonly wallet?: string;
  readonly rpc?: string;
  readonly account?: string;
  readonly contract?: string;
}

export function addLogin(program: Command, context: Context): void {
  program
    .command("login")
    .description(
      "store a key (prompted for, or the first line of standard input) or a wallet file for later commands, mode 0600",
    )
    .option("--wallet <file>", "an encrypted JSON wallet instead of a key: its owner's, in ChainSecured mode")
    .option("--rpc <url>", "RPC endpoint of the service's chain, with --wallet")
    .option("--account <id>", "the account's id when it is not the wallet's own")
    .option("--contract <address>", "the expected contract, with --wallet; default: what the service names now")
    .action((options: LoginOptions) => login(context, options));
  program
    .command("logout")
    .description("forget the login; of a key, this may be the only copy")
    .option("--yes", "forget a key without asking")
    .action((given: { yes?: boolean }) => logout(context, given.yes === true));
}

async function logout({ io, options, print }: Context, yes: boolean): Promise<void> {
  const name = profileName(io.env, options().profile);
  const file = credentialsFile(io.env);
  const profiles = readProfiles(file);
  const known = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (known === undefined) throw new WrongUse(`There is no login "${name}".`);
  const warning = `The login "${name}" may be the only copy of its key`;
  const isRefused =
    "api_key" in known &&
    !yes &&
    (await io.confirm(`${warning}, which the service never shows again. Forget it?`)) === false;
  if (isRefused) throw new WrongUse(`${warning}: pass --yes, or answer y. It was kept.`);
  removeProfile(file, name);
  print({ profile: name, forgotten: true });
}

async function login(context: Context, given: LoginOptions): Promise<void> {
  const { io, options, print } = context;
  const name = profileName(io.env, options().profile);
  const file = credentialsFile(io.env);
  const profiles = readProfiles(file);
  const requireFree = (key?: string): void => requireNoOtherKey(profiles, name, key);
  if (given.wallet !== undefined) requireFree();
  const url = originOf(options().url ?? io.env["KEYWRIGHT_URL"] ?? DEFAULT_URL);
  const profile =
    given.wallet === undefined ? await keyLogin(context, url, requireFree) : await walletLogin(context, url, given);
  writeProfile(file, name, profile);
  print({ profile: name, url, credential: "api_key" in profile ? "key" : "wallet", file });
}

async function keyLogin({ io, options }: Context, url: string, requireFree: (key: string) => void): Promise<Profile> {
  const connection = { baseUrl: url, insecure: isInsecure(io.env, options()) };
  // Refused before a key is asked for.
  createClient(connection);
  const api_key = await io.secret("Account key or usage key: ");
  requireFree(api_key);
  const client = createClient({ ...connection, apiKey: api_key });
  if (!(await withProgress(io, "trying the key", client.accountExists())))
    throw new ClientError("unknown_key", "The key is unknown to the service or was revoked.");
  return { url, api_key };
}

async function walletLogin(
  { io, options }: Context,
  url: string,
  { wallet, rpc, account, contract }: LoginOptions,
): Promise<Profile> {
  if (wallet === undefined || !existsSync(resolve(io.cwd, wallet)))
    throw new WrongUse(`There is no wallet file ${wallet ?? ""}.`);
  const rpc_url = rpc ?? io.env["KEYWRIGHT_RPC_URL"];
  if (rpc_url === undefined) throw new WrongUse("--wallet needs --rpc, an RPC endpoint of the service's chain.");
  const wanted = { account_id: account, contract_address: contract };
  const given = { wallet_file: resolve(io.cwd, wallet), rpc_url, ...defined(wanted) };
  // Connect once, so that a wrong password or chain fails here.
  const settings = { url, insecure: isInsecure(io.env, options()), wallet: given };
  const signer = await openWallet({ ...given, password: io.env["KEYWRIGHT_WALLET_PASSWORD"] }, io);
  try {
    const { contractAddress: contract_address, chainId } = await openOwner(settings, signer);
    return { url, ...given, contract_address, chain_id: String(chainId) };
  } finally {
    (signer.provider as JsonRpcProvider | null)?.destroy();
  }
}
