/**
 * Reads what the embedded database answers to a statement, in PostgreSQL's wire format. PGlite's own parser makes an
 * object of every message, which takes as long as a small statement; here it only makes errors.
 */
import { protocol, type messages } from "@electric-sql/pglite";

export interface StatementAnswer {
  /** The command's tag, such as `INSERT 0 1`. */
  readonly tag: string;
  readonly rows: readonly (readonly (string | null)[])[];
}

const HEADER_BYTES = 5;
const DATA_ROW = 0x44;
const COMMAND_COMPLETE = 0x43;
const ERROR_RESPONSE = 0x45;

/** @throws the database's error. */
export function readAnswer(bytes: Buffer): StatementAnswer {
  const rows: (string | null)[][] = [];
  let tag = "";
  for (let at = 0; at < bytes.length;) {
    const end = at + 1 + bytes.readInt32BE(at + 1);
    const type = bytes[at];
    if (type === DATA_ROW) rows.push(readRow(bytes, at + HEADER_BYTES));
    else if (type === COMMAND_COMPLETE) tag = bytes.toString("latin1", at + HEADER_BYTES, end - 1);
    else if (type === ERROR_RESPONSE) throw errorIn(bytes);
    at = end;
  }
  return { tag, rows };
}

function readRow(bytes: Buffer, start: number): (string | null)[] {
  const count = bytes.readInt16BE(start);
  const fields: (string | null)[] = [];
  let at = start + 2;
  for (let i = 0; i < count; i++) {
    const length = bytes.readInt32BE(at);
    at += 4;
    fields.push(length < 0 ? null : bytes.toString("utf8", at, at + length));
    at += Math.max(length, 0);
  }
  return fields;
}

function errorIn(bytes: Buffer): unknown {
  let found: messages.BackendMessage | undefined;
  new protocol.Parser().parse(bytes, (message) => {
    if (message.name === "error") found ??= message;
  });
  return found;
}
