/**
 * The code of a run, named by its bytes or by its CID. Whatever comes from disk or from a gateway is hashed again here before anything runs.
 * Source: design of the executor, "Code by CID".
 */
import { KeywrightError } from "../../protocol/errors";
import { parseCid } from "../../protocol/cid";
import type { Cid } from "../../protocol/ids";
import { FetchFailed, type Fetcher } from "../fetcher/types";
import type { CidComputer } from "../../protocol/cidComputer";
import type { CodeStore } from "./store";

/** What a request names; `bytes` when it brought the code along. */
export interface CodeSource {
  readonly cid: Cid;
  readonly bytes?: Buffer;
}

/** `ignoreBOM` keeps a leading byte-order mark, so that text and bytes are the same thing in both directions. */
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export class Code {
  constructor(
    private readonly cids: CidComputer,
    private readonly store: CodeStore,
    private readonly fetcher: Pick<Fetcher, "fetchCode">,
    private readonly maxBytes: number,
  ) {}

  /** @throws KeywrightError `invalid_value` unless exactly one is given, `invalid_cid`, `code_too_large`. */
  async identify({ code, cid }: { code?: string | undefined; cid?: string | undefined }): Promise<CodeSource> {
    if ((code === undefined) === (cid === undefined)) throw new KeywrightError("invalid_value", "A run needs code or a CID: exactly one of the two.");
    if (code !== undefined) {
      const bytes = Buffer.from(code, "utf8");
      this.#requireSize(bytes.length);
      return { cid: await this.cids.of(bytes), bytes };
    }
    const parsed = parseCid(cid ?? "");
    if (parsed === undefined) throw new KeywrightError("invalid_cid", "The CID must be CIDv0, or CIDv1 of dag-pb and sha2-256.");
    return { cid: parsed };
  }

  /**
   * The text of an authorised run's code. Only such code is kept and only such code is fetched.
   * @throws KeywrightError `code_not_found`, `code_unavailable`, `code_too_large`.
   */
  async load({ cid, bytes }: CodeSource): Promise<string> {
    const code = bytes ?? (await this.#kept(cid)) ?? (await this.#fetched(cid));
    this.#requireSize(code.length);
    this.store.keep(cid, code).catch(() => undefined);
    return textOf(code);
  }

  async #kept(cid: Cid): Promise<Buffer | undefined> {
    const bytes = await this.store.read(cid);
    if (bytes === undefined || (await this.cids.of(bytes)) === cid) return bytes;
    await this.store.drop(cid);
    return undefined;
  }

  async #fetched(cid: Cid): Promise<Buffer> {
    const bytes = await this.fetcher.fetchCode(cid, this.maxBytes).catch((error: unknown) => {
      throw notFetched(cid, error);
    });
    if ((await this.cids.of(bytes)) !== cid)
      throw new KeywrightError("code_unavailable", "The bytes a gateway gave are not those of the CID.", {}, { retryAfterSeconds: 5 });
    return bytes;
  }

  #requireSize(bytes: number): void {
    if (bytes > this.maxBytes) throw new KeywrightError("code_too_large", `The code is ${bytes} bytes; at most ${this.maxBytes} are accepted.`);
  }
}

function textOf(bytes: Buffer): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw new KeywrightError("code_not_found", "The bytes behind this CID are not UTF-8 text.");
  }
}

function notFetched(cid: Cid, error: unknown): unknown {
  if (!(error instanceof FetchFailed)) return error;
  if (error.code === "not_found") return new KeywrightError("code_not_found", `No code was found for ${cid}; send it once as code, or publish it.`);
  if (error.code === "too_large") return new KeywrightError("code_too_large", `The code behind ${cid} is too large.`);
  return new KeywrightError("code_unavailable", `The code behind ${cid} could not be fetched.`, {}, { cause: error.message, retryAfterSeconds: 5 });
}
