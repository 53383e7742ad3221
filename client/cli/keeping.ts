/**
 * Where an answer's secrets go instead of the screen: a new file, or the login. What would lose them is refused before
 * the request.
 */
import { closeSync, openSync, rmSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { credentialsFile, originOf, profileName, readProfiles, settingsOf, writeProfile } from "./config";
import type { Context } from "./context";
import { WrongUse } from "../errors";
import type { CommandSpec } from "./spec";

interface KeepingOptions {
  readonly out?: string;
  readonly login?: boolean;
}
type Answer = Readonly<Record<string, unknown>>;

export function addKeeping(command: Command, { name, secrets }: CommandSpec): void {
  if (secrets.length === 0) return;
  command.option(
    "--out <file>",
    "write the answer to a new file that only you can read, instead of showing its secret",
  );
  if (name === "newAccount") command.option("--login", "store the key as the login, instead of showing it");
}

/** Runs the request and returns what may be shown of its answer. */
export async function keeping(
  context: Context,
  spec: CommandSpec,
  { out, login }: KeepingOptions,
  request: () => Promise<unknown>,
): Promise<unknown> {
  const storeLogin = login === true ? loginOf(context) : undefined;
  const file = out === undefined ? undefined : newFile(resolve(context.io.cwd, out), out);
  if (storeLogin === undefined && file === undefined) return request();
  const answer = (await request().catch((error: unknown) => {
    if (file !== undefined) rmSync(file);
    throw error;
  })) as Answer;
  if (file !== undefined) writeFileSync(file, `${JSON.stringify(answer, null, 2)}\n`);
  const kept = [out, storeLogin?.(answer["api_key"])].filter((one) => one !== undefined);
  if (context.options().json !== true) context.io.err(`${spec.secrets.join(" and ")}: in ${kept.join(" and ")}.\n`);
  return Object.fromEntries(Object.entries(answer).filter(([name]) => !spec.secrets.includes(name)));
}

function newFile(file: string, named: string): string {
  try {
    closeSync(openSync(file, "wx", 0o600));
    return file;
  } catch {
    throw new WrongUse(`${named} cannot be created, or exists already: nothing was sent.`);
  }
}

function loginOf({ io, options }: Context): (key: unknown) => string {
  const name = profileName(io.env, options().profile);
  const file = credentialsFile(io.env);
  // A new profile is no error here.
  const { url, wallet } = settingsOf(io.env, { ...options(), profile: undefined });
  if (wallet !== undefined) throw new WrongUse("An account owned by a wallet has no key to log in with.");
  if (name in readProfiles(file))
    throw new WrongUse(`There is a login "${name}" already: keywright logout, or another --profile. Nothing was sent.`);
  return (api_key) => {
    if (typeof api_key !== "string") throw new WrongUse("The answer contains no key; nothing was stored.");
    writeProfile(file, name, { url: originOf(url), api_key });
    return `the login "${name}"`;
  };
}
