// Proves statements about the contract's libraries and budgets (test/proofs), for all arguments, by the model checker
// in the compiler's package (z3 is built in). Part of `npm run test:deep`; alone: `npm run proofs`. Writes
// bench/proofs.md.
// Fails if something is not proved that should be. Sets no timeout: this build of the solver crashes with one.
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import solc from "solc";
import { must } from "./gas/measure";

const ROOT = join(__dirname, "..");
/** bmc follows every path, but not through loops; chc finds what holds in each round of a loop. */
const ENGINES = { ScopesProofs: "chc", RowsProofs: "bmc", GroupSetsProofs: "bmc", BudgetsProofs: "bmc" } as const;
const TARGETS = ["assert", "overflow", "underflow", "divByZero", "outOfBounds"];
/** What the solver does not decide; tests check it by examples. */
const OPEN = [
  "`aList`: Assertion violation in `assert(needed == Scope.OwnerOnly)`",
  // The checker lets a block's time be anything.
  "`_requireApiPayer`: Overflow in `block.timestamp + CONFIRMED_FOR`",
];
const LIMITS = `This checker does not model \`revert\` with a custom error (\`Texts.requireShort\`,
\`GroupSets.fromList\`, \`Addresses\`), assembly (\`Texts\`), or storage that a library writes through a reference
(\`Column\`, \`GroupList\`, \`GroupRegister\`, the words of \`Rows\`). It does not finish, within minutes, with
\`Bits.count\` (multiplication of words), on which \`lowest\`, \`size\` and \`page\` rest, nor with sets in memory
(\`put\`, \`has\`, \`subtract\`): nothing of \`Bits\` is proved. The boundary tests, the histories and mutation testing
cover these.`;

interface Message {
  readonly severity: string;
  readonly message: string;
  readonly sourceLocation?: { readonly file: string; readonly start: number; readonly end: number };
}
interface Result {
  readonly text: string;
  readonly target: string;
  readonly isProved: boolean;
}

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const entryOf = (contract: string): string => `test/proofs/${contract}.sol`;

function check(contract: keyof typeof ENGINES): Result[] {
  const entry = entryOf(contract);
  const engine = ENGINES[contract];
  const modelChecker = { engine, targets: TARGETS, solvers: ["z3"], showProvedSafe: true, showUnproved: true };
  const input = {
    language: "Solidity",
    sources: { [entry]: { content: read(entry) } },
    settings: {
      evmVersion: "prague",
      modelChecker: { ...modelChecker, contracts: { [entry]: [contract] } },
      outputSelection: {},
    },
  };
  const findImports = (path: string): { contents: string } => ({ contents: read(path) });
  const output = JSON.parse(solc.compile(JSON.stringify(input), { import: findImports })) as { errors?: Message[] };
  const messages = output.errors ?? [];
  const failed = messages.find(({ severity }) => severity === "error");
  if (failed) throw new Error(failed.message);
  const results = messages.flatMap((message) => resultOf(message, engine));
  // The solver that is missing or gives up says nothing about a statement.
  const stated = (read(entry).match(/\bassert\(/g) ?? []).length;
  const decided = results.filter(({ target }) => target === "Assertion violation").length;
  if (decided !== stated) throw new Error(`${contract}: ${stated} statements, ${decided} results`);
  return results;
}

function resultOf({ message, sourceLocation }: Message, engine: string): Result[] {
  const target = /^(?:BMC|CHC): (.+?)(?: \(.*\))? (?:check is safe|might happen|happens)/.exec(message)?.[1];
  if (target === undefined || sourceLocation === undefined) return [];
  const source = Buffer.from(read(sourceLocation.file)); // the compiler counts bytes
  const { start, end } = sourceLocation;
  const within = must(
    [
      ...source
        .subarray(0, start)
        .toString()
        .matchAll(/function (\w+)\(/g),
    ].at(-1)?.[1],
  );
  const place = `\`${basename(sourceLocation.file)}\`, \`${within}\``;
  const text = `- ${place}: ${target} in \`${source.subarray(start, end).toString()}\` (${engine})`;
  return [{ text, target, isProved: message.includes("check is safe") }];
}

function main(): void {
  const results = (Object.keys(ENGINES) as (keyof typeof ENGINES)[]).flatMap(check);
  const listed = (proved: boolean): string[] => [
    ...new Set(results.filter(({ isProved }) => isProved === proved).map(({ text }) => text)),
  ];
  const open = listed(false);
  const page = [
    "# What the model checker proves",
    "",
    "Written by `npm run proofs` and `npm run test:deep`: statements about the contract's libraries and budgets",
    "(`test/proofs`), and the checks of arithmetic and bounds that they reach, for all arguments. Proved: no argument",
    "violates it.",
    "",
    "## Proved",
    "",
    ...listed(true),
    "",
    "## Not proved",
    "",
    ...open,
    "",
    LIMITS,
    "",
  ].join("\n");
  process.stdout.write(page);
  writeFileSync(join(ROOT, "bench/proofs.md"), page);
  const unexpected = open.filter((text) => !OPEN.some((known) => text.includes(known)));
  for (const text of unexpected) process.stderr.write(`not proved: ${text}\n`);
  process.exitCode = unexpected.length === 0 ? 0 : 1;
}

main();
