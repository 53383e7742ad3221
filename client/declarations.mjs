// The package's declarations: one .d.ts for each entry with what it exports and nothing else. Types that are computed
// from schemas are written out, so that a program needs no schema library, and a wrong field is an error without it.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rollup } from "rollup";
import { dts } from "rollup-plugin-dts";
import ts from "typescript";

/** Types computed from schemas. */
const COMPUTED = {
  "client/wire": "Wire",
  "client/policyParameters": "PolicyInputs",
  "client/verify/signature": "Collateral",
  "client/verify/recording": "Recording",
  "protocol/publicKeys": "PublicKeysAnswer",
  "protocol/receipt": "ReceiptClaims",
};
/** The contract as ethers sees it: the SDK's own business, and an opaque type to callers. */
const CONTRACT = "typechain-types/contracts/AccountManager";
/** What declarations may refer to: the program's own packages, where it uses the entries over them. */
const ALLOWED = /^(\.|node:|(ethers|viem)(\/|$))/;

/** @param entries the sources by the entries' names, from client/ and without extension */
export async function writeDeclarations(root, entries, outdir) {
  const folder = mkdtempSync(join(tmpdir(), "keywright-types-"));
  try {
    emit(root, folder);
    const input = Object.fromEntries(
      Object.entries(entries).map(([name, source]) => [name, join(folder, "client", `${source}.d.ts`)]),
    );
    const external = (id) => !/^[./]/.test(id);
    const bundle = await rollup({ input, plugins: [dts()], external, treeshake: { moduleSideEffects: false }, onwarn });
    const names = { entryFileNames: "[name].d.ts", chunkFileNames: "chunks/[name].d.ts" };
    const { output } = await bundle.write({ dir: outdir, format: "es", ...names });
    await bundle.close();
    for (const { fileName, imports } of output)
      for (const one of imports.filter((name) => !output.some((other) => other.fileName === name)))
        if (!ALLOWED.test(one)) throw new Error(`The declarations in ${fileName} refer to ${one}.`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function onwarn({ message }) {
  throw new Error(message);
}

/** The compiler's declarations of every file, the computed types written out. */
function emit(root, outDir) {
  const file = join(root, "client", "tsconfig.json");
  const { config } = ts.readConfigFile(file, ts.sys.readFile);
  const { fileNames, options } = ts.parseJsonConfigFileContent(config, ts.sys, join(root, "client"));
  const emitting = { noEmit: false, declaration: true, emitDeclarationOnly: true, incremental: false };
  const program = ts.createProgram(fileNames, {
    ...options,
    ...emitting,
    tsBuildInfoFile: undefined,
    rootDir: root,
    outDir,
  });
  // Only what concerns declarations: checking all types would double the time, and `npm run types` does.
  const errors = program.emit().diagnostics;
  if (errors.length > 0)
    throw new Error(
      ts.formatDiagnostics(errors, {
        getCanonicalFileName: (name) => name,
        getCurrentDirectory: () => root,
        getNewLine: () => "\n",
      }),
    );
  writeFileSync(
    join(outDir, `${CONTRACT}.d.ts`),
    "export interface AccountManager {}\nexport interface AccountManagerInterface {}\n",
  );
  for (const [source, alias] of Object.entries(COMPUTED)) {
    const text = writtenOut(program, join(root, `${source}.ts`), alias);
    const declared = join(outDir, `${source}.d.ts`);
    const before = readFileSync(declared, "utf8");
    const after = before.replace(new RegExp(`^(export type ${alias} =)[^]*?;$(?=\\n(?![\\s}]))`, "m"), `$1 ${text};`);
    if (after === before) throw new Error(`${declared} declares no ${alias}.`);
    writeFileSync(declared, after);
  }
}

/** The alias' type as text that names no other type but those of the language. */
function writtenOut(program, file, alias) {
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(file);
  const found = checker.getExportsOfModule(checker.getSymbolAtLocation(source)).find(({ name }) => name === alias);
  return printer(checker, source)(checker.getDeclaredTypeOfSymbol(found));
}

function printer(checker, at) {
  const { TypeFlags } = ts;
  const open = new Set();
  /** Types that contain themselves: JSON values. */
  const printed = (type) => {
    if (open.has(type)) return "unknown";
    open.add(type);
    const text = print(type);
    open.delete(type);
    return text;
  };
  const print = (type) => {
    if (type.flags & TypeFlags.Boolean) return "boolean";
    if (type.isUnion()) return union(type.types);
    // A branded text or number is one to callers.
    if (type.isIntersection()) return printed(type.types.find(({ flags }) => flags & TypeFlags.Primitive));
    if (!(type.flags & TypeFlags.Object)) return checker.typeToString(type, undefined, ts.TypeFormatFlags.NoTruncation);
    if (checker.isTupleType(type)) return `readonly [${checker.getTypeArguments(type).map(printed).join(", ")}]`;
    if (checker.isArrayType(type)) return `${type.symbol.name}<${checker.getTypeArguments(type).map(printed).join()}>`;
    return object(type);
  };
  const union = (types) => {
    const booleans = types.filter(({ flags }) => flags & TypeFlags.BooleanLiteral);
    const others = booleans.length === 2 ? types.filter((one) => !booleans.includes(one)) : types;
    return [...others.map(printed), ...(booleans.length === 2 ? ["boolean"] : [])].join(" | ");
  };
  const object = (type) => {
    const members = checker.getPropertiesOfType(type).map((property) => {
      const optional = property.flags & ts.SymbolFlags.Optional ? "?" : "";
      return `${JSON.stringify(property.name)}${optional}: ${printed(checker.getTypeOfSymbolAtLocation(property, at))}`;
    });
    const indexes = checker
      .getIndexInfosOfType(type)
      .map(({ keyType, type: value }) => `[key: ${checker.typeToString(keyType)}]: ${printed(value)}`);
    return members.length + indexes.length === 0
      ? "Record<never, never>"
      : `{\n${[...members, ...indexes].join(";\n")} }`;
  };
  return printed;
}
