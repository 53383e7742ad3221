/** `keywright/action`: an action's types are those of the ops. `KEYWRIGHT_UPDATE=1` writes the file. */
import { expect } from "chai";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { OP_ARGUMENTS } from "../../executor/ops/arguments";
import { keyOps } from "../../executor/sandbox/types";

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

/** A description of each op, for the editor. */
const PURPOSE: Record<keyof typeof OP_ARGUMENTS, string> = {
  signMessage: "EIP-191: signs the text's UTF-8 bytes. The signature, 65 bytes of hex.",
  signTypedData: "EIP-712. The signature, 65 bytes of hex.",
  signTransaction: "The raw signed transaction, ready to be sent.",
  signDigest: "Signs 32 bytes as they are. The signature, 65 bytes of hex.",
  signEd25519: "Ed25519 over a text or bytes.",
  signSchnorr: "BIP-340 over 32 bytes, with the taproot tweak when a merkle root is given.",
  signP256: "ECDSA over P-256.",
  getPublicKey: "The PKP's public key on a curve.",
  Encrypt: "Encrypts a text for the account and the PKP.",
  Decrypt: "Decrypts what was encrypted for the account and the PKP.",
  getPrivateKey: "The key itself, where the deployment allows it. Prefer the signing functions.",
  getActionPrivateKey: "A key bound to the CID of the running code.",
  signEd25519AsAction: "Ed25519 with the action's own key.",
  signSchnorrAsAction: "BIP-340 with the action's own key.",
  signP256AsAction: "P-256 with the action's own key.",
  getActionPublicKey: "The public key of any action.",
  getActionWalletAddress: "The address of any action.",
  spend: "Counts an amount against a budget of this code, before it is signed. What is left of the limit.",
};

function ops(): string {
  const methods = (Object.keys(OP_ARGUMENTS) as (keyof typeof OP_ARGUMENTS)[]).map((name) => {
    const schema = z.toJSONSchema(OP_ARGUMENTS[name], { io: "input", unrepresentable: "any" }) as Schema;
    const args = typeOf(schema);
    const optional = (schema.required ?? []).length === 0;
    return `  /** ${PURPOSE[name]} */\n  ${name}(args${optional ? "?" : ""}: ${args}): Promise<string>;`;
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

  it("name every op the keyholder serves", () => {
    expect(Object.keys(OP_ARGUMENTS).sort()).to.deep.equal([...keyOps].sort());
  });
});
