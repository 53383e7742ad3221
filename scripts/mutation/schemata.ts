/**
 * Mutant schemata: all mutants of all files are compiled at once, each beside the original code, and a value read from
 * the chain selects the active one.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import solc from "solc";
import { must } from "../gas/measure";
import { mutantsOf, walk, type Edit, type Mutant, type Node } from "./mutants";

const ROOT = join(__dirname, "../..");
/** The contracts that tests deploy. */
const ENTRIES = ["AccountManager", "Budgets"] as const;
export type Artifacts = Readonly<Record<(typeof ENTRIES)[number], Artifact>>;
const fileOf = (name: string): string => `contracts/${name}.sol`;
/** The length of this account's code is the number of the active mutant; 0 = none. */
export const SWITCH = "0x6d7574616e74000000000000000000000000face";
const SWITCHES = "contracts/Mutants.sol";
const SWITCH_SOURCE = `// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;
library Mutants {
    function on(uint256 id) internal view returns (bool acts) {
        assembly ("memory-safe") { acts := eq(extcodesize(${SWITCH}), id) }
    }
}
`;

export interface Artifact {
  readonly bytecode: string;
  readonly deployedBytecode: string;
}
interface Output {
  errors?: { severity: string; formattedMessage: string }[];
  sources: Record<string, { ast: Node }>;
  contracts: Record<
    string,
    Record<string, { evm: { bytecode: { object: string }; deployedBytecode: { object: string } } }>
  >;
}

const SETTINGS = { viaIR: true, evmVersion: "prague", optimizer: { enabled: true, runs: 200 } };
/** As little optimization as the stack depth allows: the code is compiled once and discarded. */
const QUICK = SETTINGS;

const read = (path: string): string =>
  readFileSync(join(ROOT, path.startsWith("@") ? "node_modules" : ".", path), "utf8");

function compile(settings: object, selection: object, sourceOf: (path: string) => string = read): Output {
  const input = {
    language: "Solidity",
    sources: Object.fromEntries(ENTRIES.map((name) => [fileOf(name), { content: sourceOf(fileOf(name)) }])),
    settings: { ...settings, outputSelection: selection },
  };
  const findImports = (path: string): { contents: string } => ({ contents: sourceOf(path) });
  const output = JSON.parse(solc.compile(JSON.stringify(input), { import: findImports })) as Output;
  const errors = (output.errors ?? []).filter(({ severity }) => severity === "error");
  if (errors.length > 0) throw new Error(errors.map(({ formattedMessage }) => formattedMessage).join("\n"));
  return output;
}

/** Every mutant of these files, and each text in `byHand`. */
export function findMutants(
  files: readonly string[],
  byHand: readonly { file: string; from: string; to: string; near: string }[],
): Mutant[] {
  const { sources } = compile({}, { "*": { "": ["ast"] } });
  const enums = new Map<string, string[]>();
  for (const { ast } of Object.values(sources)) {
    walk(ast, [], (node) => {
      if (node.nodeType === "EnumDefinition")
        enums.set(
          String(node["name"]),
          (node["members"] as Node[]).map(({ name }) => String(name)),
        );
    });
  }
  const found: Mutant[] = [];
  for (const file of files) {
    found.push(...mutantsOf(file, Buffer.from(read(file)), must(sources[file]).ast, enums, found.length + 1));
  }
  for (const { file, from, to, near } of byHand) {
    const source = Buffer.from(read(file));
    const start = source.indexOf(from);
    if (start === -1 || source.indexOf(from, start + 1) !== -1) throw new Error(`not exactly once in ${file}: ${from}`);
    const edit: Edit = {
      kind: "expression",
      start,
      end: start + Buffer.byteLength(from),
      text: to,
      operator: "by hand",
    };
    const line = source.subarray(0, start).toString().split("\n").length;
    found.push({ ...edit, id: found.length + 1, file, line, place: `by hand.${near}`, original: from, nth: 1 });
  }
  return found;
}

/** The contracts with all these mutants, none of which is active until the switch selects it. */
export function compileSchemata(mutants: readonly Mutant[]): Artifacts {
  const changed: Record<string, string> = { [SWITCHES]: SWITCH_SOURCE };
  for (const file of new Set(mutants.map((mutant) => mutant.file))) changed[file] = schemataOf(file, mutants);
  // Functions that read the switch are `view`, and so are their callers.
  const asViews = (source: string): string => source.replace(/\b(internal|private|public|external) pure\b/g, "$1 view");
  const sourceOf = (path: string): string => (path.startsWith("@") ? read(path) : asViews(changed[path] ?? read(path)));
  const { contracts } = compile(QUICK, selected("evm.bytecode.object", "evm.deployedBytecode.object"), sourceOf);
  const artifactOf = (name: string): Artifact => {
    const { bytecode, deployedBytecode } = must(contracts[fileOf(name)]?.[name]).evm;
    return { bytecode: `0x${bytecode.object}`, deployedBytecode: `0x${deployedBytecode.object}` };
  };
  return { AccountManager: artifactOf("AccountManager"), Budgets: artifactOf("Budgets") };
}

const selected = (...outputs: string[]): object =>
  Object.fromEntries(ENTRIES.map((name) => [fileOf(name), { [name]: outputs }]));

/** The deployed creation code with one mutant in place of the original, without the metadata at its end. */
export function compileAlone(mutant: Mutant | undefined): string {
  const sourceOf = (path: string): string => {
    const source = Buffer.from(read(path));
    if (path !== mutant?.file) return source.toString();
    // Braces keep the branch of an `if` a single statement.
    const text = mutant.kind === "statement" ? `{ ${mutant.text} }` : mutant.text;
    return `${source.subarray(0, mutant.start).toString()}${text}${source.subarray(mutant.end).toString()}`;
  };
  const settings = { ...SETTINGS, metadata: { bytecodeHash: "none" } };
  const { contracts } = compile(settings, selected("evm.bytecode.object"), sourceOf);
  return ENTRIES.map((name) => must(contracts[fileOf(name)]?.[name]).evm.bytecode.object).join();
}

function schemataOf(file: string, mutants: readonly Mutant[]): string {
  const source = Buffer.from(read(file));
  const here = mutants.filter((mutant) => mutant.file === file);
  const text = withSchemata(source, here, 0, source.length);
  const depth = file.split("/").length - 2;
  return text.replace(
    /^(pragma [^\n]*\n)/m,
    `$1import {Mutants} from "${depth === 0 ? "./" : "../".repeat(depth)}Mutants.sol";\n`,
  );
}

/**
 * The bytes from `start` to `end` with every mutant inside them; a larger mutant encloses smaller ones.
 */
function withSchemata(source: Buffer, mutants: readonly Mutant[], start: number, end: number): string {
  const inside = mutants.filter((mutant) => mutant.start >= start && mutant.end <= end);
  const isInner = (one: Mutant): boolean =>
    inside.some(
      (other) => other.start <= one.start && other.end >= one.end && other.end - other.start > one.end - one.start,
    );
  const outer = inside.filter((mutant) => !isInner(mutant)).sort((a, b) => a.start - b.start);
  let text = "";
  let at = start;
  for (const place of new Map(outer.map((mutant) => [mutant.start, mutant])).values()) {
    const same = outer.filter((mutant) => mutant.start === place.start);
    const rest = inside.filter((mutant) => !same.includes(mutant));
    text +=
      source.subarray(at, place.start).toString() + chosen(same, withSchemata(source, rest, place.start, place.end));
    at = place.end;
  }
  return text + source.subarray(at, end).toString();
}

function chosen(mutants: readonly Mutant[], original: string): string {
  let text = original;
  for (const { id, kind, text: mutated } of mutants) {
    text =
      kind === "expression"
        ? `(Mutants.on(${id}) ? ${mutated} : ${text})`
        : `{ if (Mutants.on(${id})) { ${mutated} } else { ${text} } }`;
  }
  return text;
}
