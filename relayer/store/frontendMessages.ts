/**
 * What the embedded database is sent to run a prepared statement, in PostgreSQL's wire format. PGlite's own serializer
 * copies each text several times.
 */
import { protocol } from "@electric-sql/pglite";

const { serialize } = protocol;
const EXECUTE_AND_SYNC = Buffer.concat([serialize.execute({}), serialize.sync()]);
const BIND = 0x42;
const NULL = -1;

/** Binds the statement's parameters, as text, and executes it: the messages Bind, Execute and Sync. */
export function executionOf(statement: string, values: readonly (string | null)[]): Buffer {
  const lengths = values.map((value) => (value === null ? 0 : Buffer.byteLength(value)));
  const bindBytes = lengths.reduce((sum, length) => sum + 4 + length, 4 + 1 + statement.length + 1 + 2 + 2 + 2);
  const message = Buffer.allocUnsafe(1 + bindBytes + EXECUTE_AND_SYNC.length);
  let at = message.writeUInt8(BIND);
  at = message.writeInt32BE(bindBytes, at);
  // The portal without a name.
  at = message.writeUInt8(0, at);
  at += message.write(statement, at, "latin1");
  at = message.writeUInt8(0, at);
  // No formats: parameters are text.
  at = message.writeInt16BE(0, at);
  at = message.writeUInt16BE(values.length, at);
  values.forEach((value, index) => {
    at = message.writeInt32BE(value === null ? NULL : (lengths[index] ?? 0), at);
    if (value !== null) at += message.write(value, at, "utf8");
  });
  // Results are text, too.
  at = message.writeInt16BE(0, at);
  message.set(EXECUTE_AND_SYNC, at);
  return message;
}
