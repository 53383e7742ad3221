/** Texts at which a check could take far longer than it takes to read them, in each place where a schema has a text. */
import { z } from "zod";

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

const CHARS = 30_000;
/** Runs of what patterns look for, which then do not match. */
const LONG = [
  "=",
  "0",
  "1",
  "a",
  "A",
  " ",
  "\t",
  "/",
  ".",
  "-",
  "0x",
  "a.",
  "1,",
  "(",
  "[",
  "a:",
  "%41",
  "\ufffd",
  "é",
].flatMap((piece) => {
  const text = piece.repeat(CHARS / piece.length);
  return [text, `${text}!`, `0x${text}x`, `https://${text}@`];
});

/** Values of the schema, with each choice of its words, in which one text is long. */
export const withLongText = (schema: z.ZodType): Generator<unknown> =>
  valuesOf(z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Schema);

function* valuesOf(schema: Schema): Generator<unknown> {
  for (const one of [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]) yield* valuesOf(one);
  const { properties } = schema;
  if (schema.items !== undefined) for (const item of valuesOf(schema.items)) yield [item];
  if (properties !== undefined)
    for (const base of basesOf(schema))
      for (const [name, field] of Object.entries(properties))
        for (const value of valuesOf(field)) yield { ...base, [name]: value };
  if (schema.type === "string" && schema.enum === undefined) yield* LONG;
  if (schema.type === undefined && properties === undefined) yield* LONG;
}

function basesOf({ properties = {}, required = [] }: Schema): object[] {
  const usual = Object.fromEntries(required.map((name) => [name, sampleOf(properties[name] ?? {})]));
  const choices = Object.entries(properties).flatMap(([name, field]) =>
    (field.enum ?? []).map((word) => ({ ...usual, [name]: word })),
  );
  return choices.length === 0 ? [usual] : choices;
}

function sampleOf(schema: Schema): unknown {
  const [example = schema.enum?.[0]] = schema.examples ?? [];
  if (example !== undefined) return example;
  const [branch] = schema.anyOf ?? schema.oneOf ?? [];
  if (branch !== undefined) return sampleOf(branch);
  if (schema.type === "object") return basesOf(schema)[0];
  return schema.type === "array" ? [] : schema.type === "string" ? "text" : 1;
}
