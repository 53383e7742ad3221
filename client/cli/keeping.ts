/**
 * Where an answer's secrets go instead of the screen: a new file, or the login. What would lose them is refused before
 * the request.
 */
import { closeSync, openSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import {
  credentialsFile,
  originOf,
  profileName,
  readProfiles,
  requireWritable,
  settingsOf,
  writePrivate,
  writeProfile,
} from "./config";
import type { Context } from "./context";
import { ClientError, WrongUse, withFacts } from "../errors";
import type { Made } from "../operations";
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
  request: (made: Made) => Promise<unknown>,
): Promise<unknown> {
  const storeLogin = login === true ? loginOf(context) : undefined;
  const file = out === undefined ? undefined : secretFile(context, out);
  if (file === undefined && storeLogin === undefined) return secretShown(context, spec, request);
  const answer = (await (file === undefined ? request(() => undefined) : intoFile(file, request))) as Answer;
  const kept = [out, storeLogin?.(answer)].filter((one) => one !== undefined);
  if (context.options().json !== true) context.io.err(`${spec.secrets.join(" and ")}: in ${kept.join(" and ")}.\n`);
  return Object.fromEntries(Object.entries(answer).filter(([name]) => !spec.secrets.includes(name)));
}

/** As soon as it is made: what fails later may still take effect. */
async function intoFile({ write, failed }: SecretFile, request: (made: Made) => Promise<unknown>): Promise<unknown> {
  try {
    const answer = await request(write);
    write(answer as Answer);
    return answer;
  } catch (error) {
    throw failed(error);
  }
}

/** Where it is to be shown, a secret whose later step failed is shown all the same. */
async function secretShown(
  context: Context,
  { secrets }: CommandSpec,
  request: (made: Made) => Promise<unknown>,
): Promise<unknown> {
  let made: Answer = {};
  try {
    return await request((answer) => (made = answer));
  } catch (error) {
    if (secrets.some((name) => made[name] !== undefined)) {
      context.print(made);
      if (context.options().json !== true) context.io.err(`Store this: it was made, and may still take effect.\n`);
    }
    throw error;
  }
}

export interface SecretFile {
  readonly write: (answer: Answer) => void;
  /** The error to throw: removes the file where nothing was written, and says otherwise what is in it. */
  readonly failed: (error: unknown) => unknown;
}

/** Created before anything is sent, and by nobody else. */
export function secretFile({ io, print }: Pick<Context, "io" | "print">, named: string): SecretFile {
  const file = resolve(io.cwd, named);
  try {
    closeSync(openSync(file, "wx", 0o600));
  } catch {
    throw new WrongUse(`${named} cannot be created, or exists already: nothing was sent.`);
  }
  let written = false;
  return {
    write: (answer) => {
      try {
        writePrivate(file, answer);
      } catch (error) {
        // It exists nowhere else.
        print(answer);
        io.err(`Shown after all, since ${named} could not be written: store it.\n`);
        throw error;
      }
      written = true;
    },
    failed: (error) => {
      if (!written) rmSync(file, { force: true });
      return written && error instanceof ClientError ? withFacts(error, { secret_in: named }) : error;
    },
  };
}

function loginOf({ io, options, print }: Context): (answer: Answer) => string {
  const name = profileName(io.env, options().profile);
  const file = credentialsFile(io.env);
  // A new profile is no error here.
  const { url, wallet } = settingsOf(io.env, { ...options(), profile: undefined });
  if (wallet !== undefined) throw new WrongUse("An account owned by a wallet has no key to log in with.");
  if (name in readProfiles(file))
    throw new WrongUse(`There is a login "${name}" already: keywright logout, or another --profile. Nothing was sent.`);
  requireWritable(file);
  return (answer) => {
    const { api_key } = answer;
    if (typeof api_key !== "string") throw new WrongUse("The answer contains no key; nothing was stored.");
    try {
      writeProfile(file, name, { url: originOf(url), api_key });
    } catch (error) {
      // Shown after all, since it exists nowhere else.
      print(answer);
      throw error;
    }
    return `the login "${name}"`;
  };
}
