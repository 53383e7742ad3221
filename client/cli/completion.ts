/** Completions for the three common shells, from the program's own tree. */
import type { Command } from "commander";
import { WrongUse } from "../errors";
import type { Context } from "./context";

const SHELLS = ["bash", "zsh", "fish"] as const;

export function addCompletion(program: Command, { io }: Context): void {
  program
    .command("completion")
    .description("a script for the shell: source <(keywright completion bash)")
    .argument("<shell>", SHELLS.join(", "))
    .action((shell: string) => {
      const known = SHELLS.find((one) => one === shell);
      if (known === undefined) throw new WrongUse(`There are completions for ${SHELLS.join(", ")}.`);
      io.out(SCRIPTS[known](pathsOf(program)));
    });
}

/** The words so far (joined by spaces) and their possible continuations. */
type Paths = readonly (readonly [words: string, next: readonly string[]])[];

function pathsOf(command: Command, words: readonly string[] = []): Paths {
  const options = command.options.flatMap(({ long }) => (long ? [long] : []));
  const next = [...command.commands.map((one) => one.name()), ...options];
  return [[words.join(" "), next], ...command.commands.flatMap((one) => pathsOf(one, [...words, one.name()]))];
}

const cases = (paths: Paths): string =>
  paths.map(([words, next]) => `    "${words}") next="${next.join(" ")}" ;;`).join("\n");

/** Skips options and their values, so that the remaining words name a command. */
const bash = (paths: Paths): string => `_keywright() {
  local words="" word next="" at
  for ((at = 1; at < COMP_CWORD; at++)); do
    word="\${COMP_WORDS[at]}"
    case "$word" in -*) ;; *) words="\${words:+$words }$word" ;; esac
  done
  while :; do
    case "$words" in
${cases(paths)}
    esac
    [ -n "$next" ] && break
    case "$words" in *" "*) words="\${words% *}" ;; *) words=""; next="${paths[0]?.[1].join(" ") ?? ""}"; break ;; esac
  done
  COMPREPLY=($(compgen -W "$next" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _keywright keywright
`;

const SCRIPTS: Readonly<Record<(typeof SHELLS)[number], (paths: Paths) => string>> = {
  bash,
  zsh: (paths) => `autoload -U +X bashcompinit && bashcompinit\n${bash(paths)}`,
  fish: (paths) =>
    `complete -c keywright -f\n${paths
      .filter(([, next]) => next.length > 0)
      .map(
        ([words, next]) =>
          `complete -c keywright -n 'test "'"(string match -v -- "-*" (commandline -opc)[2..-1] | string join " ` +
          `")"'" = "${words}"' -a "${next.join(" ")}"`,
      )
      .join("\n")}\n`,
};
