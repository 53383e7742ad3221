/** Builds commands from operation specs: arguments, options, and their mapping to the operation's fields. */
import { CommanderError, Option, type Command } from "commander";
import { EXIT } from "./failure";
import type { CommandSpec, Field } from "./spec";
import { parseJson } from "../../protocol/json";

/** The command at its place below `parent`, with its arguments and options. */
export function commandOf(parent: Command, spec: CommandSpec): Command {
  const [last = "", ...rest] = [...spec.words].reverse();
  const group = rest
    .reverse()
    .reduce(
      (at, word) => at.commands.find((one) => one.name() === word) ?? at.command(word).description(nounText(word)),
      parent,
    );
  const command = group.command(last).description(spec.summary);
  for (const field of spec.fields) addField(command, field);
  return command;
}

const NOUNS: Readonly<Record<string, string>> = {
  account: "the account",
  pkp: "key pairs that a TEE derives only while they are used",
  group: "which actions may use which PKPs",
  action: "names of actions in the account",
  key: "usage keys and their scopes",
  triggers: "actions that run by themselves",
  runs: "what was run",
  billing: "credit and payments",
  webhooks: "signed messages about the account",
  service: "the service itself",
  api: "operations without a command of their own",
};
const nounText = (word: string): string => NOUNS[word] ?? word;

function addField(command: Command, { name, kind, positional, option, description }: Field): void {
  if (positional) {
    command.argument(`<${name}>`, description);
    return;
  }
  const flags = {
    flag: `--${option}`,
    list: `--${option} <items>`,
    text: `--${option} <${kind}>`,
    json: `--${option} <json>`,
  }[kind];
  const made = new Option(flags, kind === "list" ? `${description} Separated by commas.` : description);
  if (kind === "list") made.argParser((text, before?: string[]) => [...(before ?? []), ...listOf(text)]);
  if (kind === "json") made.argParser((text) => jsonOf(text, option));
  command.addOption(made);
}

const listOf = (text: string): string[] =>
  text
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");

function jsonOf(text: string, option: string): unknown {
  const value = parseJson(text);
  if (value === undefined) throw new CommanderError(EXIT.wrongUse, "wrong_use", `--${option} must be JSON`);
  return value;
}

const camel = (option: string): string => option.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** Values by the wire's names, from what commander hands to an action: arguments, then the options. */
export function typedOf(spec: CommandSpec, given: readonly unknown[]): Record<string, unknown> {
  const positional = spec.fields.filter((field) => field.positional);
  const options = given[positional.length] as Record<string, unknown>;
  const named = spec.fields
    .filter((field) => !field.positional)
    .flatMap(({ name, option }) => {
      const value = options[camel(option)];
      return value === undefined ? [] : [[name, value] as const];
    });
  return Object.fromEntries([
    ...positional.map(({ name }, i) => [name, given[i]] as const),
    ...named,
    ["all", options["all"]],
  ]);
}
