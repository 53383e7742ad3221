/**
 * `keywright webhooks listen`: passes signed messages on to a port of this machine. They are fetched over the API, so
 * no public address is needed; a webhook without a URL exists as long as the command runs.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import type { Answer, Body } from "../wire";
import { settingsOf } from "./config";
import { connect } from "./connection";
import type { Connection } from "../operations";
import { refuseIdempotencyKey, type Context } from "./context";
import { WrongUse } from "../errors";
import { oneLine } from "./text";

type Message = Answer<"receiveWebhook">["messages"][number];
type Passed = NonNullable<Body<"receiveWebhook">["passed"]>;

interface Options {
  readonly forwardTo: string;
  readonly events: string;
}

const POLL_MS = 1_000;
const FORWARD_MS = 10_000;
/** How often the service may fail in a row. */
const MAX_FAILURES = 30;

export function addWebhooks(program: Command, context: Context): void {
  const group = program.commands.find((command) => command.name() === "webhooks") ?? program.command("webhooks");
  group
    .command("listen")
    .description("pass signed messages about the account on to a URL of this machine, until interrupted")
    .requiredOption("--forward-to <url>", "where they go, for example http://localhost:3000/keywright")
    .option("--events <types>", "types, families or *, separated by commas", "*")
    .action((options: Options) => listen(context, options));
}

async function listen(context: Context, { forwardTo, events }: Options): Promise<void> {
  refuseIdempotencyKey(context.options());
  if (!URL.canParse(forwardTo) || !/^https?:$/.test(new URL(forwardTo).protocol))
    throw new WrongUse("--forward-to must be an http or https URL.");
  const wanted = events.split(",").map((type) => type.trim());
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal);
  // Without the progress of other commands: this one runs until it is stopped.
  const connection = await connect(settingsOf(context.io.env, context.options()), context.io);
  try {
    await whileListening(context, connection, { forwardTo, wanted }, stop.signal);
  } finally {
    connection.close();
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
}

async function whileListening(
  { io }: Context,
  connection: Connection,
  { forwardTo, wanted }: { readonly forwardTo: string; readonly wanted: readonly string[] },
  stop: AbortSignal,
): Promise<void> {
  const description = "keywright webhooks listen";
  const { id } = (await connection.call("createWebhook", { events: wanted, description })) as Answer<"createWebhook">;
  io.err(`Listening as ${id}; messages go to ${forwardTo}. Stop with Ctrl+C.\n`);
  try {
    await forwardAll({ id, forwardTo, connection, stop, say: (line) => io.out(`${oneLine(line)}\n`) });
  } finally {
    await connection.call("deleteWebhook", { id }).catch(() => undefined);
  }
}

interface Listening {
  readonly id: string;
  readonly forwardTo: string;
  readonly connection: Connection;
  readonly stop: AbortSignal;
  readonly say: (line: string) => void;
}

async function forwardAll(listening: Listening): Promise<void> {
  const { id, connection, stop } = listening;
  let passed: Passed = [];
  for (let failures = 0; !stop.aborted;) {
    try {
      const { messages } = (await connection.call("receiveWebhook", { id, passed })) as Answer<"receiveWebhook">;
      failures = 0;
      passed = [];
      for (const message of messages) passed.push(await forward(listening, message));
    } catch (error) {
      if (++failures === MAX_FAILURES) throw error;
    }
    if (passed.length === 0) await sleep(POLL_MS, undefined, { signal: stop }).catch(() => undefined);
  }
  if (passed.length > 0) await connection.call("receiveWebhook", { id, passed }).catch(() => undefined);
}

async function forward({ forwardTo, say }: Listening, { message_id, headers, body }: Message): Promise<Passed[number]> {
  const { type } = JSON.parse(body) as { type: string };
  try {
    const signal = AbortSignal.timeout(FORWARD_MS);
    const { status } = await fetch(forwardTo, { method: "POST", headers, body, redirect: "manual", signal });
    say(`${type} ${message_id} → ${status}`);
    return { message_id, status };
  } catch (error) {
    const failure = String((error as { cause?: { code?: unknown } }).cause?.code ?? (error as Error).name);
    say(`${type} ${message_id} → ${failure}`);
    return { message_id, failure };
  }
}
