/** `keywright export`: the account's history for an auditor, on standard output. */
import { Argument, Option, type Command } from "commander";
import { exportedText } from "../exports";
import { EXPORT_KINDS, type ExportKind } from "../../protocol/exports";
import type { Context } from "./context";

interface Options {
  readonly format: "jsonl" | "csv";
  readonly cursor?: string;
}

export function addExport(program: Command, context: Context): void {
  program
    .command("export")
    .description("the account's whole history, newest first: runs with the hashes of their receipts, writes, postings")
    .addArgument(new Argument("<kind>", "what to export").choices(EXPORT_KINDS))
    .addOption(new Option("--format <format>", "form of the rows").choices(["jsonl", "csv"]).default("jsonl"))
    .option("--cursor <cursor>", "go on after the row with this cursor, where an earlier export ended")
    .action((kind: ExportKind, options: Options) =>
      context.asking(`export ${kind}`, async (connection) => {
        const exporter = {
          exportHistory: (input: object = {}): Promise<string> =>
            connection.call("exportHistory", input as Record<string, unknown>) as Promise<string>,
        };
        for await (const text of exportedText(exporter, kind, options)) context.io.out(text);
      }),
    );
}
