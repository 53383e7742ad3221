/** Which functions of the relayer lock rows of given tables, as read from their statements. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const RELAYER = join(__dirname, "..", "..", "relayer");
const DECLARATION =
  /^(?:(?:export )?(?:async )?function (\w+)|(?:export )?const (\w+)(?:: .*)? =|  (?:async |get )?(#?\w+)\()/;

/** As "credits/holds.ts close", sorted. Migrations are no part of it: nothing else runs meanwhile. */
export function lockingFunctions(tables: readonly string[]): string[] {
  const found = readdirSync(RELAYER, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.includes("migrations"))
    .flatMap((file) =>
      functionsOf(readFileSync(join(RELAYER, file), "utf8"))
        .filter(({ text }) => locks(text, tables))
        .map(({ name }) => `${file} ${name}`),
    );
  return [...new Set(found)].sort();
}

/** Parts of a source, each from one declaration to the next. */
function functionsOf(source: string): { readonly name: string; readonly text: string }[] {
  const found: { name: string; text: string }[] = [];
  for (const line of source.split("\n")) {
    const [, ...names] = DECLARATION.exec(line) ?? [];
    const name = names.find((one) => one !== undefined);
    if (name !== undefined) found.push({ name, text: "" });
    const last = found.at(-1);
    if (last !== undefined) last.text += `${line}\n`;
  }
  return found;
}

function locks(text: string, tables: readonly string[]): boolean {
  const name = `(?:${tables.join("|")})\\b`;
  const changes = new RegExp(
    `(?:update|insert into|delete from) ${name}|(?:updateTable|insertInto|deleteFrom)\\("${name}`,
  );
  return changes.test(text) || (/for update|forUpdate\(/.test(text) && new RegExp(`\\b${name}`).test(text));
}
