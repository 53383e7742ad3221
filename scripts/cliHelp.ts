/** The commands of docs/cli.md, generated from the program's own help: `node dist/scripts/cliHelp.js` writes them. */
import { readFileSync, writeFileSync } from "node:fs";
import type { Argument, Command, Option } from "commander";
import { buildProgram } from "../client/cli/program";

const MARKERS = /<!-- commands -->[\s\S]*<!-- \/commands -->/;

/** Built only to be looked at; nothing runs. */
export const shownProgram = (): Command =>
  buildProgram({
    env: {},
    cwd: ".",
    terminal: false,
    columns: 80,
    out: () => undefined,
    err: () => undefined,
    secret: async () => "",
    confirm: async () => false,
  });

const cell = (text: string): string => text.replace(/\|/g, "\\|").replace(/\s+/g, " ");
const argumentText = (argument: Argument): string => {
  const text = argument.name() + (argument.variadic ? "..." : "");
  return argument.required ? `<${text}>` : `[${text}]`;
};
const optionsOf = (command: Command): readonly Option[] => command.options.filter(({ hidden }) => !hidden);

/** A command with its description and a row for each argument and option. */
function section(command: Command, words: string): string {
  const title = [words, ...command.registeredArguments.map(argumentText)].join(" ");
  const rows = [
    ...command.registeredArguments
      .filter(({ description }) => description !== "")
      .map((one) => [argumentText(one), one.description]),
    ...optionsOf(command).map(({ flags, description, mandatory }) => [
      flags,
      mandatory ? `${description} (needed)` : description,
    ]),
  ];
  const table = rows.map(([what = "", means = ""]) => `| \`${cell(what)}\` | ${cell(means)} |`);
  return [
    `### ${words}`,
    `\`keywright ${title}\`: ${cell(command.description())}`,
    ...(table.length > 0 ? [["| Takes | |", "|---|---|", ...table].join("\n")] : []),
  ].join("\n\n");
}

/** Groups of operations take one row each: their fields are documented by the API. */
const isOperations = (command: Command): boolean =>
  command.commands.length > 0 && !["policy", "safe"].includes(command.name());

export function commandsText(): string {
  const { commands } = shownProgram();
  const groups = commands
    .filter(isOperations)
    .map(
      (one) =>
        `| \`${one.name()}\` | ${cell(one.description())} | ` +
        `${one.commands.map((inner) => `\`${inner.name()}\``).join(" ")} |`,
    );
  const single = commands
    .filter((one) => !isOperations(one))
    .flatMap((one) => [
      section(one, one.name()),
      ...(one.name() === "policy" ? one.commands.map((inner) => section(inner, `${one.name()} ${inner.name()}`)) : []),
    ]);
  return [["| Operations | On | Commands |", "|---|---|---|", ...groups].join("\n"), ...single].join("\n\n");
}

/** Replaces the page's commands with the generated ones. */
export const withHelp = (page: string): string =>
  page.replace(MARKERS, () => `<!-- commands -->\n\n${commandsText()}\n\n<!-- /commands -->`);

if (require.main === module) {
  const [, , file = "docs/cli.md"] = process.argv;
  writeFileSync(file, withHelp(readFileSync(file, "utf8")));
}
