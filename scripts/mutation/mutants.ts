/**
 * Mutants of a Solidity source: small edits found on the compiler's syntax tree, each of which some test should detect.
 */
import { must } from "../gas/measure";

/** The members of a syntax tree node that the operators use. */
export interface Node {
  readonly nodeType: string;
  readonly src: string;
  readonly [field: string]: unknown;
}

/**
 * An edit: the bytes `start` to `end` of a file replaced by `text`. An expression keeps its type; a statement stays a
 * statement.
 */
export interface Edit {
  readonly kind: "expression" | "statement";
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly operator: string;
}
export interface Mutant extends Edit {
  readonly id: number;
  readonly file: string;
  readonly line: number;
  /** Its `Contract.function`. */
  readonly place: string;
  readonly original: string;
  /** Its number among mutants of the same text in one function, from 1. */
  readonly nth: number;
}

const COMPARED: Record<string, string[]> = {
  "<": ["<=", ">="],
  "<=": ["<", ">"],
  ">": [">=", "<="],
  ">=": [">", "<"],
  "==": ["!="],
  "!=": ["=="],
};
const COMPUTED: Record<string, string[]> = {
  "+": ["-"],
  "-": ["+"],
  "*": ["/"],
  "/": ["*"],
  "%": ["/"],
  "&": ["|"],
  "|": ["&"],
  "^": ["|"],
  "<<": [">>"],
  ">>": ["<<"],
};
const ASSIGNED: Record<string, string> = { "+=": "-=", "-=": "+=", "|=": "&=", "&=": "|=", "^=": "|=" };

/** Every mutant of a file's functions. */
export function mutantsOf(
  file: string,
  source: Buffer,
  tree: Node,
  enums: ReadonlyMap<string, readonly string[]>,
  firstId: number,
): Mutant[] {
  const found: Omit<Mutant, "id" | "nth">[] = [];
  const text = (node: Node): string => source.subarray(...rangeOf(node)).toString();
  const forwards = source.includes("ERC2771Context");
  walk(tree, [], (node, above) => {
    const place = placeOf(above);
    if (place === undefined) return;
    for (const edit of editsOf({ node, above, text, source, enums, forwards })) {
      const original = source.subarray(edit.start, edit.end).toString();
      const line = source.subarray(0, edit.start).toString().split("\n").length;
      if (edit.text !== original) found.push({ ...edit, file, place, line, original });
    }
  });
  const seen = new Map<string, number>();
  return found.map((mutant, i) => {
    const looks = JSON.stringify([mutant.place, mutant.original, mutant.text]);
    const nth = (seen.get(looks) ?? 0) + 1;
    seen.set(looks, nth);
    return { ...mutant, id: firstId + i, nth };
  });
}

interface Scene {
  readonly node: Node;
  /** Ancestors from the root down to the parent. */
  readonly above: readonly Node[];
  readonly text: (node: Node) => string;
  readonly source: Buffer;
  readonly enums: ReadonlyMap<string, readonly string[]>;
  readonly forwards: boolean;
}

function editsOf(scene: Scene): Edit[] {
  switch (scene.node.nodeType) {
    case "BinaryOperation":
      return ofBinary(scene);
    case "UnaryOperation":
      return ofUnary(scene);
    case "IfStatement":
      return ["true", "false"].map((word) => expression("condition", scene.node["condition"] as Node, word));
    case "Conditional":
      return [
        expression("condition", scene.node["condition"] as Node, `!(${scene.text(scene.node["condition"] as Node)})`),
      ];
    case "Return":
      return ofReturn(scene);
    case "Assignment":
      return ofAssignment(scene);
    case "ExpressionStatement":
    case "EmitStatement":
    case "Continue":
      return ofStatement(scene);
    case "Literal":
      return ofLiteral(scene);
    case "Identifier":
      return ofConstant(scene);
    case "MemberAccess":
      return ofMember(scene);
    case "FunctionCall":
      return ofCall(scene);
    default:
      return [];
  }
}

function ofBinary({ node, text }: Scene): Edit[] {
  const operator = String(node["operator"]);
  const [left, right] = [text(node["leftExpression"] as Node), text(node["rightExpression"] as Node)];
  if (isConstant(node)) return [];
  if (operator === "&&" || operator === "||") {
    const other = operator === "&&" ? "||" : "&&";
    return [left, right, `(${left}) ${other} (${right})`].map((mutated) => expression("logic", node, mutated));
  }
  const swapped = COMPARED[operator] ?? COMPUTED[operator] ?? [];
  // A shift has the type of its left operand: a literal there would get a small type.
  if (/<<|>>/.test(operator) && isConstant(node["leftExpression"] as Node)) return [];
  return swapped.map((other) =>
    expression(COMPARED[operator] ? "comparison" : "arithmetic", node, `${left} ${other} ${right}`),
  );
}

function ofUnary({ node, text, above }: Scene): Edit[] {
  const operator = String(node["operator"]);
  const inner = text(node["subExpression"] as Node);
  if (isConstant(node)) return [];
  if (operator === "!" || operator === "~") return [expression("negation", node, inner)];
  const isLoopStep = above.some(
    (node, i) => node.nodeType === "ForStatement" && above[i + 1] === node["loopExpression"],
  );
  if (isLoopStep || (operator !== "++" && operator !== "--")) return [];
  const other = operator === "++" ? "--" : "++";
  return [expression("step", node, node["prefix"] === true ? `${other}${inner}` : `${inner}${other}`)];
}

function ofReturn({ node, text }: Scene): Edit[] {
  const value = node["expression"] as Node | null;
  if (value === null || value === undefined || typeOf(value) !== "bool") return [];
  return [expression("result", value, `!(${text(value)})`)];
}

function ofAssignment(scene: Scene): Edit[] {
  const { node, text } = scene;
  const other = ASSIGNED[String(node["operator"])];
  if (other === undefined) return [];
  const mutated = `${text(node["leftHandSide"] as Node)} ${other} ${text(node["rightHandSide"] as Node)}`;
  return atStatement(scene, "assignment", () => mutated);
}

/** Removes the statement. */
function ofStatement({ node, above, source }: Scene): Edit[] {
  const parent = must(above.at(-1));
  if (parent.nodeType === "ForStatement" && parent["body"] !== node) return [];
  const target = (node["expression"] as Node | undefined)?.["leftHandSide"] as Node | undefined;
  if (target !== undefined && typeOf(target).endsWith("storage pointer")) return []; // must be set
  const range = withSemicolon(node, source);
  return range === undefined
    ? []
    : [{ kind: "statement", start: range[0], end: range[1], text: "", operator: "deletion" }];
}

function ofLiteral(scene: Scene): Edit[] {
  const { node, text, above } = scene;
  const isOfBytes = typeOf(must(above.at(-1))).startsWith("bytes"); // bytes32(1) is not an expression
  if (node["kind"] !== "number" || node["subdenomination"] || isOfBytes) return [];
  const [start, end] = rangeOf(node);
  const value = BigInt(text(node).replace(/_/g, ""));
  const other = value === 0n ? "1" : String(value - 1n);
  return around(scene, "literal", (shown, from) => spliced(shown, start - from, end - from, other));
}

function spliced(text: string, start: number, end: number, replacement: string): string {
  const bytes = Buffer.from(text);
  return bytes.subarray(0, start).toString() + replacement + bytes.subarray(end).toString();
}

/** Constants of a file or contract, plus one. */
function ofConstant({ node, text }: Scene): Edit[] {
  const name = text(node);
  if (!/^[A-Z][A-Z_]+$/.test(name) || node["lValueRequested"] === true || !/^uint/.test(typeOf(node))) return [];
  return [expression("constant", node, `(${name} + 1)`)];
}

function ofMember({ node, text, enums, forwards }: Scene): Edit[] {
  const shown = text(node);
  const [, name] = /^enum (\w+)$/.exec(typeOf(node)) ?? [];
  const members = name === undefined ? undefined : enums.get(name);
  if (members !== undefined && shown.startsWith(`${String(name)}.`)) {
    const at = members.indexOf(String(node["memberName"]));
    return [expression("enum", node, `${String(name)}.${must(members[(at + 1) % members.length])}`)];
  }
  return forwards && shown === "msg.sender" ? [expression("caller", node, "_msgSender()")] : [];
}

function ofCall(scene: Scene): Edit[] {
  const { node, text } = scene;
  if (node["kind"] !== "functionCall") return [];
  if (text(node) === "_msgSender()") return [expression("caller", node, "msg.sender")];
  const args = node["arguments"] as Node[];
  const edits: Edit[] = [];
  for (let i = 0; i + 1 < args.length; i++) {
    const [one, other] = [must(args[i]), must(args[i + 1])];
    if (typeOf(one) !== typeOf(other) || text(one) === text(other)) continue;
    const swap = (shown: string, from: number): string => {
      const [a, b] = [rangeOf(one), rangeOf(other)].map(([start, end]) => [start - from, end - from] as const) as [
        [number, number],
        [number, number],
      ];
      const bytes = Buffer.from(shown);
      const part = (start: number, end?: number): string => bytes.subarray(start, end).toString();
      return part(0, a[0]) + part(...b) + part(a[1], b[0]) + part(...a) + part(b[1]);
    };
    edits.push(...around(scene, "arguments", swap));
  }
  return edits;
}

/** The edit of the smallest expression around `inner` whose type fits both forms; else of its statement. */
function around(scene: Scene, operator: string, change: (shown: string, from: number) => string): Edit[] {
  const chain = [...scene.above, scene.node];
  for (let i = chain.length - 1; i >= 0; i--) {
    const node = must(chain[i]);
    if (/Statement$/.test(node.nodeType) || node.nodeType === "Return") break;
    if (/^(Emit|Revert)Statement$/.test(chain[i - 1]?.nodeType ?? "")) break;
    const isWhole =
      node.nodeType === "BinaryOperation" ||
      (node.nodeType === "FunctionCall" &&
        node["kind"] === "functionCall" &&
        typeOf(node) !== "error" &&
        isSingle(typeOf(node)));
    if (!isWhole || isConstant(node) || node["lValueRequested"] === true) continue;
    return [expression(operator, node, change(scene.text(node), rangeOf(node)[0]))];
  }
  return atStatement(scene, operator, change);
}

function atStatement(
  { node, above, source, text }: Scene,
  operator: string,
  change: (shown: string, from: number) => string,
): Edit[] {
  const chain = [...above, node];
  const statement = chain.findLast(({ nodeType }) => /^(Expression|Emit|Revert)Statement$/.test(nodeType));
  const parent = statement === undefined ? undefined : chain[chain.indexOf(statement) - 1];
  if (statement === undefined || parent?.nodeType === "ForStatement") return [];
  const range = withSemicolon(statement, source);
  if (range === undefined) return [];
  const shown = text(statement);
  const [from] = rangeOf(statement);
  return [{ kind: "statement", start: range[0], end: range[1], text: `${change(shown, from)};`, operator }];
}

const isSingle = (type: string): boolean => !type.startsWith("tuple(");
const typeOf = (node: Node): string =>
  String((node["typeDescriptions"] as { typeString?: string } | undefined)?.typeString);
const isConstant = (node: Node): boolean => /^(int_const|rational_const)/.test(typeOf(node));

function expression(operator: string, node: Node, text: string): Edit {
  const [start, end] = rangeOf(node);
  return { kind: "expression", start, end, text, operator };
}

export function rangeOf({ src }: Node): [number, number] {
  const [start, length] = src.split(":").map(Number) as [number, number];
  return [start, start + length];
}

function withSemicolon(node: Node, source: Buffer): [number, number] | undefined {
  const [start, end] = rangeOf(node);
  if (source[end - 1] === 0x3b) return [start, end];
  return source[end] === 0x3b ? [start, end + 1] : undefined;
}

function placeOf(above: readonly Node[]): string | undefined {
  const fn = above.find(({ nodeType }) => nodeType === "FunctionDefinition");
  const contract = above.find(({ nodeType }) => nodeType === "ContractDefinition");
  const isInBody = above.some((node) => fn !== undefined && node === fn["body"]);
  const isAssembly = above.some(({ nodeType }) => nodeType === "InlineAssembly");
  if (fn === undefined || contract === undefined || !isInBody || isAssembly) return undefined;
  return `${String(contract["name"])}.${String(fn["name"]) || String(fn["kind"])}`;
}

export function walk(node: Node, above: readonly Node[], visit: (node: Node, above: readonly Node[]) => void): void {
  visit(node, above);
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (isNode(child)) walk(child, [...above, node], visit);
    }
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "nodeType" in value && "src" in value;
}
