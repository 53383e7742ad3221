/**
 * The account's history for auditors, as JSON Lines or CSV: streamed page by page, so that a slow reader holds nothing
 * but its connection, and resumable after any row. Source: docs/api.md "Export".
 */
import { Readable } from "node:stream";
import { EXPORT_COLUMNS, type ExportKind, type ExportRow } from "../../protocol/exports";
import { KeywrightError } from "../../protocol/errors";
import { SHARED_LIMITS } from "../../protocol/limits";
import { Crowded, FairShare, inScope, Preempted } from "../../protocol/fairShare";
import type { AccountId } from "../../protocol/ids";
import type { Answer, Call, HandlersOf } from "../middleware/call";
import type { RouteDeps } from "./deps";

const PAGE_ROWS = 500;
/** After this an answer ends, however slowly it is read; its reader resumes. */
const MAX_MS = 5 * 60_000;
const READ_WAIT_MS = 30_000;
/** How long an export waits for others to end. */
const PLACE_WAIT_MS = 5_000;
const MAX_OPEN = 64;
const MAX_OPEN_EACH = 2;

interface ExportLimits {
  readonly pageRows: number;
  readonly mostMs: number;
}

export function exportRoutes(
  { chain, credits }: Pick<RouteDeps, "chain" | "credits">,
  { pageRows, mostMs }: ExportLimits = { pageRows: PAGE_ROWS, mostMs: MAX_MS },
): HandlersOf<"exportHistory"> {
  const sources: Readonly<Record<ExportKind, Source>> = {
    runs: (accountId, after, rows) => credits.exports.runs(accountId, after, rows),
    postings: (accountId, after, rows) => credits.exports.postings(accountId, after, rows),
    writes: (accountId, after, rows) => chain.exportWrites(accountId, after, rows),
  };
  /** Answers under way: each holds its place until its stream has closed, or others have waited for it. */
  const places = new FairShare({ total: MAX_OPEN, mostEach: MAX_OPEN_EACH, patienceMs: SHARED_LIMITS.patienceMs });
  /** Pages that are read from the database at the same time, by all accounts. */
  const reads = new FairShare({ total: 4, mostEach: 1, mostWaiting: 2 * MAX_OPEN });
  const begin = async (
    { caller: { accountId }, query: { kind, format, cursor, limit } }: Call<"exportHistory">,
    over: AbortSignal,
  ): Promise<Answer<"exportHistory">> => {
    const read: Source = (account, after, rows) =>
      inScope(account, undefined, async (scope) => {
        await scope.take(reads, 1, { withinMs: READ_WAIT_MS });
        return sources[kind](account, after, rows);
      });
    // The first page before the answer begins: a bad cursor or a crowd is an error, not a broken stream.
    const first = await read(accountId, cursor, Math.min(pageRows, limit));
    over.throwIfAborted();
    const pages = pagesOf({ read, accountId, first, limit, pageRows, endsAt: Date.now() + mostMs });
    const lines = format === "csv" ? csvOf(pages, EXPORT_COLUMNS[kind]) : jsonLinesOf(pages);
    const content = Readable.from(lines, { objectMode: false, highWaterMark: 64 * 1_024 });
    over.addEventListener("abort", () => content.destroy(over.reason as Error));
    return { contentType: format === "csv" ? "text/csv; charset=utf-8" : "application/x-ndjson", content };
  };
  return {
    exportHistory: (call) =>
      new Promise((resolve, reject) => {
        // Nobody reads the answer to a caller that has left or is not confirmed: it would hold its place to the end.
        inScope(call.caller.accountId, call.signal, async (scope) => {
          await call.confirmed;
          await scope.take(places, 1, { withinMs: PLACE_WAIT_MS });
          const answer = await begin(call, scope.over);
          resolve(answer);
          await ended(answer.content, mostMs + READ_WAIT_MS);
        }).catch((error: unknown) => reject(refusalOf(error)));
      }),
  };
}

/** Resolves when the stream has closed. A slow reader's is closed in time, also when it reads nothing at all. */
function ended(stream: Readable, mostMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => stream.destroy(new Error("the export was read too slowly")), mostMs);
    stream.once("close", () => (clearTimeout(timer), resolve()));
    // A request that was refused meanwhile has nobody who listens, and such an error would end the process.
    stream.on("error", () => undefined);
  });
}

/** Rows older than the cursor, newest first. */
type Source = (accountId: AccountId, after: string | undefined, rows: number) => Promise<readonly ExportRow[]>;

interface Pages {
  readonly read: Source;
  readonly accountId: AccountId;
  readonly first: readonly ExportRow[];
  readonly limit: number;
  readonly pageRows: number;
  readonly endsAt: number;
}

async function* pagesOf({
  read,
  accountId,
  first,
  limit,
  pageRows,
  endsAt,
}: Pages): AsyncGenerator<readonly ExportRow[]> {
  let page = first;
  for (let sent = page.length; page.length > 0; sent += page.length) {
    yield page;
    const wanted = Math.min(pageRows, limit - sent);
    if (wanted === 0 || Date.now() > endsAt) return;
    page = await read(accountId, page.at(-1)?.["cursor"] as string, wanted);
  }
}

async function* jsonLinesOf(pages: AsyncIterable<readonly ExportRow[]>): AsyncGenerator<string> {
  for await (const page of pages) yield page.map((row) => `${JSON.stringify(row)}\n`).join("");
}

/** RFC 4180, with a header. */
async function* csvOf(pages: AsyncIterable<readonly ExportRow[]>, columns: readonly string[]): AsyncGenerator<string> {
  yield `${columns.join()}\r\n`;
  for await (const page of pages)
    yield page.map((row) => `${columns.map((name) => cell(row[name])).join()}\r\n`).join("");
}

function cell(value: ExportRow[string] | undefined): string {
  const text = Array.isArray(value) ? value.join(" ") : String(value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const refusalOf = (error: unknown): unknown =>
  error instanceof Crowded || error instanceof Preempted
    ? new KeywrightError("queue_full", "Other exports are under way: an account has two at a time.", undefined, {
        retryAfterSeconds: error instanceof Crowded ? error.retryAfterSeconds : 1,
      })
    : error;
