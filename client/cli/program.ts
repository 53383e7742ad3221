/**
 * The command line `keywright`: commands made from the route table, and the few that do more than one request.
 * Documented in docs/cli.md.
 */
import { Command, CommanderError } from "commander";
import { everyItem } from "../api";
import { ClientError } from "../errors";
import type { Connection, Made, Page } from "../operations";
import { addCompletion } from "./completion";
import { settingsOf, type CommonOptions } from "./config";
import { commandOf, typedOf } from "./commands";
import { connect, type Repeating } from "./connection";
import { refuseIdempotencyKey, type Context, type GlobalOptions } from "./context";
import { EXIT, EXIT_TEXT, Ended, failureJson, failureOf, failureText, wrongUseOf } from "./failure";
import { withProgress, type Io } from "./io";
import { addExport } from "./export";
import { addKeeping, keeping } from "./keeping";
import { addLogin } from "./login";
import { addMcp } from "./mcp";
import { addPolicy } from "./policy";
import { addProject } from "./project";
import { addReceipt } from "./receipt";
import { addRun } from "./run";
import { addSafe } from "./safe";
import { commandSpecs, inputOf, type CommandSpec } from "./spec";
import { jsonText, readable } from "./text";
import { VERSION } from "../../protocol/version";
import { addVerify } from "./verify";
import { addWebhooks } from "./webhooks";

/** Runs one command line. @returns the exit code */
export async function runCli(args: readonly string[], io: Io): Promise<number> {
  const asJson = args.includes("--json");
  const program = buildProgram(asJson ? { ...io, usage: () => undefined } : io);
  try {
    await program.parseAsync([...args], { from: "user" });
    return EXIT.ok;
  } catch (error) {
    if (error instanceof Ended) return error.exitCode;
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT.ok;
    // Without --json, commander has printed its error.
    // Without an option's value, or behind an unknown option, commander has not come to the command.
    const names = new Set(program.commands.map((one) => one.name()));
    const wrongUse = wrongUseOf([...program.args, ...args].find((one) => names.has(one)));
    if (error instanceof CommanderError && !asJson) return wrongUse;
    const failure = failureOf(error);
    io.err(asJson ? failureJson(failure) : failureText(failure));
    return failure.exitCode === EXIT.wrongUse ? wrongUse : failure.exitCode;
  }
}

export function buildProgram(io: Io): Command {
  const program = new Command("keywright")
    .description("A programmable key service from the command line")
    .option("--url <origin>", "origin of the service (KEYWRIGHT_URL; default: the login's, or http://127.0.0.1:8000)")
    .option("--profile <name>", "which login to use (KEYWRIGHT_PROFILE)")
    .option("--json", "answers, errors included, as JSON")
    .option("--insecure", "allow http to other machines: keys can be read on the way (KEYWRIGHT_INSECURE=1)")
    .option("--idempotency-key <text>", "repeat a request whose answer was lost, without doing it twice")
    .version(VERSION, "--version", "the version of this program")
    .addHelpText("after", `\n${EXIT_TEXT}`)
    .exitOverride()
    .configureOutput({ writeOut: (text) => io.out(text), writeErr: (text) => (io.usage ?? io.err)(text) });
  const context = contextOf(program, io);
  addLogin(program, context);
  addRun(program, context);
  addOperations(program, context);
  addExport(program, context);
  addWebhooks(program, context);
  addProject(program, context);
  addPolicy(program, context);
  addMcp(program, context);
  addVerify(program, context);
  addReceipt(program, context);
  addSafe(program, context);
  addCompletion(program, context);
  return program;
}

function contextOf(program: Command, io: Io): Context {
  const options = (): GlobalOptions => program.opts<GlobalOptions>();
  const connectedWith = async <T>(
    use: (connection: Connection) => Promise<T>,
    repeating?: Repeating,
    asked: CommonOptions = options(),
  ): Promise<T> => {
    const connection = await connect(settingsOf(io.env, asked), io, repeating);
    try {
      return await use(connection);
    } finally {
      connection.close();
    }
  };
  const connected: Context["connected"] = (use) => {
    refuseIdempotencyKey(options());
    return connectedWith(use);
  };
  const waiting: Context["waiting"] = (what, work) => (options().json === true ? work : withProgress(io, what, work));
  return {
    io,
    options,
    connected,
    waiting,
    print: (value) =>
      io.out(
        options().json === true ? `${jsonText(value, 2)}\n` : readable(value, io.terminal ? io.columns : undefined),
      ),
    asking: (what, use, isFirst = false) =>
      connectedWith(
        (connection) => waiting(what, use(connection)),
        { idempotencyKey: options().idempotencyKey },
        isFirst ? { ...options(), profile: undefined } : options(),
      ),
  };
}

function addOperations(program: Command, context: Context): void {
  for (const spec of commandSpecs()) {
    const command = commandOf(program, spec);
    if (spec.paged) command.option("--all", "every page");
    addKeeping(command, spec);
    command.action(async (...given: unknown[]) => {
      const { all, ...typed } = typedOf(spec, given);
      const input = inputOf(spec, typed);
      const request = (made: Made): Promise<unknown> =>
        context.asking(
          spec.words.join(" "),
          (connection) =>
            all === true ? wholeList(context, connection, spec, input) : connection.call(spec.name, input, made),
          command.opts()["login"] === true,
        );
      const answer = await keeping(context, spec, command.opts(), request);
      printAnswer(context, spec, answer);
    });
  }
}

function printAnswer({ print, options, io }: Context, spec: CommandSpec, answer: unknown): void {
  if (options().json === true || !spec.paged) {
    print(answer);
    for (const name of spec.secrets)
      if (options().json !== true && hasMember(answer, name)) io.err(`Store ${name}: it is shown only once.\n`);
    return;
  }
  const { items, total } = answer as Page<unknown>;
  print(items);
  if (items.length < total) io.err(`${items.length} of ${total}; --all shows every one.\n`);
}

const hasMember = (answer: unknown, name: string): boolean =>
  typeof answer === "object" && answer !== null && name in answer;

async function wholeList(
  { io }: Context,
  connection: Connection,
  spec: CommandSpec,
  input: Record<string, unknown>,
): Promise<Page<unknown>> {
  const items: unknown[] = [];
  const list = (query: object): Promise<Page<unknown>> => connection.call(spec.name, query) as Promise<Page<unknown>>;
  try {
    for await (const item of everyItem(list, input)) items.push(item);
  } catch (error) {
    // Lists that grow for ever reach so far back, and say how older items are listed.
    if (items.length === 0 || !(error instanceof ClientError) || error.code !== "invalid_value") throw error;
    io.err(`${error.message}\n`);
  }
  return { items, total: items.length };
}
