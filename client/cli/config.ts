/**
 * Resolves the service and the credential: flags, then the environment, then the file that `keywright login` writes.
 */
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { z } from "zod";
import { WrongUse } from "../errors";

export type Environment = Readonly<Record<string, string | undefined>>;

/** All environment variables that the program reads. */
export const ENVIRONMENT = {
  KEYWRIGHT_URL: "origin of the service",
  KEYWRIGHT_API_KEY: "account key or usage key",
  KEYWRIGHT_WALLET_FILE: "encrypted JSON wallet of a ChainSecured owner",
  KEYWRIGHT_WALLET_PASSWORD: "its password",
  KEYWRIGHT_RPC_URL: "RPC endpoint of the service's chain, for wallets",
  KEYWRIGHT_ACCOUNT_ID: "the account's id when it is not the wallet's own",
  KEYWRIGHT_INSECURE: "1 allows http to other machines, as --insecure does",
  KEYWRIGHT_PROFILE: "which login to use; default: default",
  KEYWRIGHT_CONFIG: "file of the logins; default: keywright/credentials.json below XDG_CONFIG_HOME or ~/.config",
} as const;

export const processEnvironment = (): Environment => process.env;

const keyProfile = z.object({ url: z.string(), api_key: z.string() });
const walletProfile = z.object({
  url: z.string(),
  wallet_file: z.string(),
  rpc_url: z.string(),
  account_id: z.string().optional(),
  /** As of the login: a service that names others later is refused. */
  contract_address: z.string().optional(),
  chain_id: z.string().optional(),
});
/** What a newer program stored besides is kept. */
const fileSchema = z.looseObject({
  profiles: z.record(z.string(), z.union([keyProfile.loose(), walletProfile.loose()])),
});

export type WalletProfile = z.output<typeof walletProfile>;
export type Profile = z.output<typeof keyProfile> | WalletProfile;

export interface CommonOptions {
  readonly url?: string | undefined;
  readonly profile?: string | undefined;
  readonly insecure?: boolean | undefined;
}

/** Settings of the commands. Without a credential only the open operations work. */
export interface Settings {
  readonly url: string;
  /** Whether http to other machines is allowed. */
  readonly insecure: boolean;
  readonly apiKey?: string;
  readonly wallet?: Omit<WalletProfile, "url"> & { readonly password?: string | undefined };
}

export const DEFAULT_URL = "http://127.0.0.1:8000";

export function credentialsFile(env: Environment): string {
  if (env["KEYWRIGHT_CONFIG"]) return resolve(env["KEYWRIGHT_CONFIG"]);
  return join(env["XDG_CONFIG_HOME"] || join(env["HOME"] || homedir(), ".config"), "keywright", "credentials.json");
}

export const profileName = (env: Environment, asked?: string): string => asked ?? env["KEYWRIGHT_PROFILE"] ?? "default";

export const isInsecure = (env: Environment, { insecure }: CommonOptions): boolean =>
  insecure ?? env["KEYWRIGHT_INSECURE"] === "1";

/** For what needs no login. */
export const serviceOf = (env: Environment, asked: CommonOptions): Pick<Settings, "url" | "insecure"> => ({
  url: credentialOf(env, asked).url,
  insecure: isInsecure(env, asked),
});

export function settingsOf(env: Environment, asked: CommonOptions): Settings {
  const given = (["KEYWRIGHT_API_KEY", "KEYWRIGHT_WALLET_FILE"] as const).find((name) => env[name]);
  const named = namedLogin(env, asked);
  // Else one service would be asked with another one's key.
  if (named !== undefined && given !== undefined)
    throw new WrongUse(`Both ${named} and ${given} name a login: leave out one.`);
  return { ...credentialOf(env, asked), insecure: isInsecure(env, asked) };
}

/** What chooses a login; the environment only where that login's service would be asked. */
function namedLogin(env: Environment, { profile, url }: CommonOptions): string | undefined {
  if (profile !== undefined) return `--profile ${profile}`;
  const name = env["KEYWRIGHT_PROFILE"];
  if (name === undefined || (url ?? env["KEYWRIGHT_URL"]) !== undefined) return undefined;
  return readProfiles(credentialsFile(env))[name] === undefined ? undefined : `KEYWRIGHT_PROFILE=${name}`;
}

function credentialOf(env: Environment, asked: CommonOptions): Omit<Settings, "insecure"> {
  const stored = readProfiles(credentialsFile(env))[profileName(env, asked.profile)];
  if (asked.profile !== undefined && stored === undefined)
    throw new WrongUse(`There is no login "${asked.profile}": keywright login --profile ${asked.profile}.`);
  const url = asked.url ?? env["KEYWRIGHT_URL"] ?? stored?.url ?? DEFAULT_URL;
  const password = env["KEYWRIGHT_WALLET_PASSWORD"];
  if (env["KEYWRIGHT_API_KEY"]) return { url, apiKey: env["KEYWRIGHT_API_KEY"] };
  if (env["KEYWRIGHT_WALLET_FILE"]) {
    const rpc = env["KEYWRIGHT_RPC_URL"];
    if (!rpc)
      throw new WrongUse("KEYWRIGHT_WALLET_FILE needs KEYWRIGHT_RPC_URL, an RPC endpoint of the service's chain.");
    const account = env["KEYWRIGHT_ACCOUNT_ID"];
    return {
      url,
      wallet: {
        wallet_file: env["KEYWRIGHT_WALLET_FILE"],
        rpc_url: rpc,
        password,
        ...(account ? { account_id: account } : {}),
      },
    };
  }
  // Send a stored key only to the service it was stored for.
  if (stored === undefined || new URL(stored.url).origin !== originOf(url)) return { url };
  if ("api_key" in stored) return { url, apiKey: stored.api_key };
  const { url: _, ...wallet } = stored;
  return { url, wallet: { ...wallet, password } };
}

export function originOf(url: string): string {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new WrongUse(`${url} is not the http(s) origin of a service.`);
  return new URL(url).origin;
}

interface Logins {
  readonly profiles: Record<string, Profile>;
}

export const readProfiles = (file: string): Logins["profiles"] => readLogins(file).profiles;

function readLogins(file: string): Logins {
  if (!existsSync(file)) return { profiles: {} };
  if (process.platform !== "win32" && (statSync(file).mode & 0o077) !== 0)
    throw new WrongUse(
      `${file} can be read by other users: chmod 600 it, and change the keys if others use this machine.`,
    );
  try {
    return fileSchema.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    throw new WrongUse(
      `${file} is not a file of logins: repair it or move it away; it may hold the only copy of a key.`,
    );
  }
}

/** Refuses to replace a stored key by another login: the service showed it once, and this may be its only copy. */
export function requireNoOtherKey(profiles: Profiles, name: string, key?: string): void {
  const known = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (known !== undefined && "api_key" in known && known.api_key !== key)
    throw new WrongUse(
      `The login "${name}" holds a key, which may be its only copy: choose another --profile, or keywright logout ` +
        `--profile ${name} first. Nothing was sent or stored.`,
    );
}

export function writeProfile(file: string, name: string, profile: Profile): void {
  changeProfiles(file, (profiles) => {
    requireNoOtherKey(profiles, name, "api_key" in profile ? profile.api_key : undefined);
    return { ...profiles, [name]: profile };
  });
}

export function removeProfile(file: string, name: string): void {
  changeProfiles(file, (profiles) => Object.fromEntries(Object.entries(profiles).filter(([known]) => known !== name)));
}

/** Writes the file as it is: what cannot be stored later fails before a key is made. */
export function requireWritable(file: string): void {
  changeProfiles(file, (profiles) => profiles);
}

type Profiles = Readonly<Record<string, Profile>>;

/** One program at a time, from reading to writing: of two logins, neither is lost. */
function changeProfiles(file: string, change: (profiles: Profiles) => Profiles): void {
  const unlock = lockOf(file);
  try {
    const logins = readLogins(file);
    writePrivate(file, { ...logins, profiles: change(logins.profiles) });
  } finally {
    unlock();
  }
}

const LOCK_TRIES = 40;
const LOCK_PAUSE_MS = 50;

function lockOf(file: string): () => void {
  const lock = `${file}.lock`;
  for (let tries = 1; !isTaken(file, lock); tries += 1) {
    if (tries === LOCK_TRIES)
      throw new WrongUse(`Another program is changing the logins. If none is running, remove ${lock}.`);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_PAUSE_MS);
  }
  return () => rmSync(lock, { force: true });
}

/** Whether this program has taken the lock; false while another one has it. */
function isTaken(file: string, lock: string): boolean {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    closeSync(openSync(lock, "wx", 0o600));
    return true;
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" && path === lock) return false;
    throw new WrongUse(`${file} cannot be written (${String(code)}): nothing was stored.`);
  }
}

/**
 * Atomic: writes a temporary file and renames it, so that a crash leaves the old one. Created with mode 0600, so that
 * the content is never readable by others, also where the old file was.
 */
export function writePrivate(file: string, secrets: object): void {
  const temporary = `${file}.${process.pid}`;
  try {
    // What is there was left by a crash, or put there by somebody who wants to read it.
    rmSync(temporary, { force: true });
    writeFileSync(temporary, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600, flag: "wx" });
    renameSync(temporary, file);
  } finally {
    rmSync(temporary, { force: true });
  }
}
