/** `keywright/action`: an action's types are those of the ops. `KEYWRIGHT_UPDATE=1` writes the file. */
import { expect } from "chai";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { OP_ARGUMENTS } from "../../executor/ops/arguments";
import { OP_NAMES, OPS, opRow, type OpName } from "../../protocol/ops";

const FILE = join(__dirname, "..", "..", "client", "action.ts");
const MARKERS = /\/\/ ops\n[\s\S]*\/\/ end\n/;

interface Schema {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
}

/** An action may pass bytes and numbers of any size: the bridge encodes them as hex and as decimal text. */
function typeOf(schema: Schema): string {
  const options = schema.anyOf ?? schema.oneOf;
  if (options !== undefined) return [...new Set(options.map(typeOf))].join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  switch (schema.type) {
    case "object":
      return schema.properties === undefined ? recordOf(schema) : objectOf(schema);
    case "array":
      return `readonly (${typeOf(schema.items ?? {})})[]`;
    case "string":
      return "string";
    case "integer":
    case "number":
      return "number | bigint";
    case "boolean":
      return "boolean";
    case "null":
      return "null";
    default:
      return "unknown";
  }
}

const recordOf = ({ additionalProperties: inner }: Schema): string =>
  `Record<string, ${typeof inner === "object" ? typeOf(inner) : "unknown"}>`;

/** Where text is accepted, the bridge also encodes an object of bytes. */
function objectOf({ properties = {}, required = [] }: Schema): string {
  if (Object.keys(properties).join() === "bytes") return "Uint8Array";
  const members = Object.entries(properties).map(
    ([name, part]) => `${name}${required.includes(name) ? "" : "?"}: ${typeOf(part)}`,
  );
  return members.length === 0 ? "Record<string, never>" : `{ ${members.join("; ")} }`;
}

const schemaOf = (name: OpName): Schema =>
  z.toJSONSchema(OP_ARGUMENTS[name], { io: "input", unrepresentable: "any" }) as Schema;

function ops(): string {
  const methods = OP_NAMES.map((name) => {
    const schema = schemaOf(name);
    const args = typeOf(schema);
    const optional = (schema.required ?? []).length === 0;
    return `  /** ${OPS[name].purpose} */\n  ${name}(args${optional ? "?" : ""}: ${args}): Promise<string>;`;
  });
  return (
    `// ops\n/** Written from the op schemas by KEYWRIGHT_UPDATE=1 npx mocha test/client/actionTypes.test.ts; never ` +
    `by hand. */\nexport interface Ops {\n${methods.join("\n")}\n}\n// end\n`
  );
}

const formatted = (text: string): string =>
  execFileSync("npx", ["prettier", "--stdin-filepath", FILE], { input: text, encoding: "utf8" });

describe("the types of an action", () => {
  it("are those of the op schemas", () => {
    const text = readFileSync(FILE, "utf8");
    const fresh = formatted(text.replace(MARKERS, ops));
    if (process.env["KEYWRIGHT_UPDATE"] === "1") writeFileSync(FILE, fresh);
    else expect(text).to.equal(fresh);
  }).timeout(20_000);

  it("have the fields that `Actions` passes on", () => {
    for (const name of OP_NAMES) {
      const { properties = {}, required = [] } = schemaOf(name);
      const { required: needed, optional = [] } = opRow(name);
      expect(Object.keys(properties), name).to.have.members([...needed, ...optional]);
      expect(required, name).to.have.members(needed);
    }
  });
});
