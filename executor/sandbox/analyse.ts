/** Parses code before it runs: script or module, its imports, its entry, the library it needs. Executes nothing. */
import { Parser, type Node, type Program } from "acorn";

export type EthersVersion = "ethers6" | "ethers5";

export interface Analysis {
  /** Modules may import and export; everything else is a script. */
  isModule: boolean;
  /** A script that awaits at top level: the engine takes it only as the body of an async function. */
  awaits: boolean;
  /** Specifiers of static imports and re-exports, in order, without repeats. */
  imports: string[];
  /** The ethers version the code uses, if any. */
  ethers?: EthersVersion;
  /** How the entry is found: no entry, a top-level binding `main`, or a module's default export. */
  entry: "none" | "main" | "default";
  /** Names that a script makes global by `var` or `function`, at any depth outside functions and classes. */
  globals: string[];
}

/** The code does not parse; `message` names the position. */
export class Unparsable extends Error {}

const OPTIONS = { ecmaVersion: 2023, allowHashBang: true, allowAwaitOutsideFunction: false } as const;
const V5_MEMBERS = new Set(["utils", "providers", "BigNumber"]);

export function analyse(code: string): Analysis {
  const parsed = parseEither(code);
  const facts = factsOf(parsed.program);
  const { program, isModule = false, awaits = false } = (facts.namesAwait && reallyAwaiting(code)) || parsed;
  return {
    isModule,
    awaits,
    imports: isModule ? importsOf(program) : [],
    ethers:
      facts.readsV5 || (facts.namesLit && facts.mentionsEthers)
        ? "ethers5"
        : facts.mentionsEthers
          ? "ethers6"
          : undefined,
    entry: entryOf(program),
    globals: isModule || awaits ? [] : globalsOf(program),
  };
}

/**
 * Without the parser's check for duplicate declarations, which takes quadratic time (nine seconds for 300 kB of
 * declarations). The engine makes the check itself when it compiles the code.
 */
const LinearParser = Parser.extend(
  (Base) =>
    class extends Base {
      declareName(): void {}
      checkLocalExport(): void {}
    },
);

type Parsed = { program: Program } & Partial<Pick<Analysis, "isModule" | "awaits">>;

/**
 * Parses as a script if possible (sloppy mode, completion value), else as one that awaits, else as a module. If all
 * fail, reports the script's error unless the code is clearly a module.
 */
function parseEither(code: string): Parsed {
  try {
    return { program: LinearParser.parse(code, { ...OPTIONS, sourceType: "script" }) };
  } catch (asScript) {
    return parseAwaiting(code) ?? parseModule(code, asScript);
  }
}

function parseAwaiting(code: string): Parsed | undefined {
  const options = { ...OPTIONS, allowAwaitOutsideFunction: true, allowHashBang: false };
  try {
    return { program: LinearParser.parse(code, { ...options, sourceType: "script" }), awaits: true };
  } catch {
    return undefined;
  }
}

/**
 * In a script, `await (x)` is a call of something called `await`, `await [x]` its member, `await +x` a sum. That is
 * meant only if something stays that can be nothing but its name.
 */
function reallyAwaiting(code: string): Parsed | undefined {
  const parsed = parseAwaiting(code);
  return parsed === undefined || factsOf(parsed.program).namesAwait ? undefined : parsed;
}

function parseModule(code: string, asScript: unknown): Parsed {
  try {
    return { program: LinearParser.parse(code, { ...OPTIONS, sourceType: "module" }), isModule: true };
  } catch (asModule) {
    throw new Unparsable(messageOf(looksLikeModule(code) ? asModule : asScript));
  }
}

const looksLikeModule = (code: string): boolean => /^\s*(import|export)\b/m.test(code);

function messageOf(error: unknown): string {
  if (error instanceof RangeError) return "the code is nested too deeply to be parsed";
  return error instanceof Error ? error.message : "the code cannot be parsed";
}

interface Facts {
  mentionsEthers: boolean;
  readsV5: boolean;
  /** The code names `Lit` or `LitActions`, like programs written for ethers version 5. */
  namesLit: boolean;
  /** Something is called `await`. */
  namesAwait: boolean;
}

type AnyNode = Node & Record<string, unknown>;

/** Walks with an explicit stack: the code decides how deep it nests. */
function factsOf(program: Program): Facts {
  const facts: Facts = { mentionsEthers: false, readsV5: false, namesLit: false, namesAwait: false };
  const open: AnyNode[] = [program as unknown as AnyNode];
  for (let node = open.pop(); node; node = open.pop()) {
    note(node, facts);
    for (const child of childrenOf(node)) open.push(child);
  }
  return facts;
}

const isNode = (value: unknown): value is AnyNode =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";

const isEthers = (value: unknown): boolean => isNode(value) && value.type === "Identifier" && value.name === "ethers";

function note(node: AnyNode, facts: Facts): void {
  if (isEthers(node)) facts.mentionsEthers = true;
  if (node.type === "Identifier" && (node.name === "Lit" || node.name === "LitActions")) facts.namesLit = true;
  if (node.type === "Identifier" && node.name === "await") facts.namesAwait = true;
  if (node.type === "Literal" && node.value === "ethers") facts.mentionsEthers = true;
  if (node.type === "MemberExpression") noteMember(node, facts);
  if (node.type === "VariableDeclarator" && isEthers(node.init) && isNode(node.id)) facts.readsV5 ||= picksV5(node.id);
}

function noteMember(node: AnyNode, facts: Facts): void {
  const name = memberName(node);
  if (isEthers(node.object) && V5_MEMBERS.has(name)) facts.readsV5 = true;
  // It reads a transaction with ethers.
  if (name === "callContract") facts.mentionsEthers = true;
}

function memberName(node: AnyNode): string {
  const property = node.property as AnyNode;
  if (property.type === "Identifier" && !node.computed) return property.name as string;
  return property.type === "Literal" && typeof property.value === "string" ? property.value : "";
}

/** `const { utils, BigNumber } = ethers` */
function picksV5(pattern: AnyNode): boolean {
  if (pattern.type !== "ObjectPattern") return false;
  return (pattern.properties as AnyNode[]).some(
    (property) => isNode(property.key) && V5_MEMBERS.has(String(property.key.name ?? property.key.value)),
  );
}

/**
 * Names that the code declares itself shadow parameters. In a script, `var` in any block and functions in blocks are
 * global.
 */
function globalsOf(program: Program): string[] {
  const names = new Set<string>();
  const open: AnyNode[] = [program as unknown as AnyNode];
  for (let node = open.pop(); node; node = open.pop()) {
    if (node.type === "VariableDeclaration" && node.kind === "var")
      for (const { id } of node.declarations as { id: AnyNode }[]) namesOf(id, names);
    if (node.type === "FunctionDeclaration") names.add((node.id as AnyNode).name as string);
    if (!OWN_SCOPE.has(node.type)) for (const child of childrenOf(node)) open.push(child);
  }
  return [...names];
}

const OWN_SCOPE = new Set([
  "FunctionDeclaration",
  "FunctionExpression",
  "ArrowFunctionExpression",
  "ClassDeclaration",
  "ClassExpression",
]);

/** Collects the names that a pattern binds. */
function namesOf(pattern: AnyNode, names: Set<string>): void {
  const open = [pattern];
  for (let node = open.pop(); node; node = open.pop()) {
    if (node.type === "Identifier") names.add(node.name as string);
    else if (node.type === "AssignmentPattern") open.push(node.left as AnyNode);
    else if (node.type === "Property") open.push(node.value as AnyNode);
    else for (const child of childrenOf(node)) open.push(child);
  }
}

function childrenOf(node: AnyNode): AnyNode[] {
  return Object.values(node).flatMap((value) =>
    Array.isArray(value) ? value.filter(isNode) : isNode(value) ? [value] : [],
  );
}

function importsOf(program: Program): string[] {
  const sources = program.body.flatMap((statement) =>
    "source" in statement && statement.source ? [String(statement.source.value)] : [],
  );
  return [...new Set(sources)];
}

/** `main`, if declared at top level and not already called there; otherwise a module's default export. */
function entryOf(program: Program): Analysis["entry"] {
  if (program.body.some(callsMain)) return "none";
  if (program.body.some(declaresMain)) return "main";
  return program.body.some((statement) => statement.type === "ExportDefaultDeclaration") ? "default" : "none";
}

function declaresMain(statement: Program["body"][number]): boolean {
  if (statement.type === "ExportNamedDeclaration")
    return statement.declaration ? declaresMain(statement.declaration) : false;
  if (statement.type === "ExportDefaultDeclaration") {
    return statement.declaration.type === "FunctionDeclaration" && statement.declaration.id?.name === "main";
  }
  if (statement.type === "FunctionDeclaration") return statement.id.name === "main";
  if (statement.type === "VariableDeclaration")
    return statement.declarations.some(({ id }) => id.type === "Identifier" && id.name === "main");
  return statement.type === "ImportDeclaration" && statement.specifiers.some(({ local }) => local.name === "main");
}

/** `main()`, `await main()`, `main().then(…)` as a top-level statement: older actions start themselves. */
function callsMain(statement: Program["body"][number]): boolean {
  if (statement.type !== "ExpressionStatement") return false;
  let expression = statement.expression as unknown as AnyNode;
  while (
    expression.type === "AwaitExpression" ||
    (expression.type === "CallExpression" && (expression.callee as AnyNode).type === "MemberExpression")
  ) {
    expression = (
      expression.type === "AwaitExpression" ? expression.argument : (expression.callee as AnyNode).object
    ) as AnyNode;
  }
  const callee = expression.type === "CallExpression" ? (expression.callee as AnyNode) : undefined;
  return callee?.type === "Identifier" && callee.name === "main";
}
