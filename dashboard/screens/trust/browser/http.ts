/** One bounded GET from a page, which cannot see the certificate of its own connection. */
import { Buffer } from "buffer";
import type { GetOptions, Got } from "../../../../client/verify/http";

export async function get(url: URL, { maxBytes, timeoutMs }: GetOptions): Promise<Got> {
  const answer = await fetch(url, {
    redirect: "error",
    credentials: "omit",
    cache: "no-store",
    signal: AbortSignal.timeout(timeoutMs),
  });
  const body = Buffer.from(await answer.arrayBuffer());
  if (body.length > maxBytes) throw new Error(`${url.pathname}: the answer is larger than ${maxBytes} bytes`);
  return { status: answer.status, body: body as unknown as Got["body"] };
}
