/** One bounded GET that also returns the certificate presented on the same connection. */
import * as http from "node:http";
import * as https from "node:https";
import type { TLSSocket } from "node:tls";
import { defined } from "../../protocol/defined";

export interface GetOptions {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  /** PEM of authorities to trust instead of the system's. */
  readonly ca?: string;
}

export interface Got {
  readonly status: number;
  readonly body: Buffer;
  /** DER of the leaf; absent over plain HTTP. */
  readonly leaf?: Buffer;
}

/** Follows no redirect. Throws Error with a readable reason. */
export function get(url: URL, { maxBytes, timeoutMs, ca }: GetOptions): Promise<Got> {
  return new Promise((resolve, reject) => {
    const fail = (reason: string): void => {
      clearTimeout(deadline);
      request.destroy();
      reject(new Error(`${url.pathname}: ${reason}`));
    };
    const deadline = setTimeout(() => fail(`no answer within ${timeoutMs} ms`), timeoutMs);
    const options = {
      agent: false,
      headers: { accept: "application/json, text/plain, */*" },
      ...defined({ ca }),
    } as const;
    const request = (url.protocol === "https:" ? https : http).request(url, options, (response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      const leaf = leafOf(response.socket);
      response.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size > maxBytes) fail(`the answer is larger than ${maxBytes} bytes`);
        else chunks.push(chunk);
      });
      response.on("error", (error) => fail(error.message));
      response.on("end", () => {
        clearTimeout(deadline);
        if (!response.complete) return fail("the answer was cut off");
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks), ...defined({ leaf }) });
      });
    });
    request.on("error", (error) => fail(error.message));
    request.end();
  });
}

function leafOf(socket: http.IncomingMessage["socket"]): Buffer | undefined {
  return "getPeerCertificate" in socket ? (socket as TLSSocket).getPeerCertificate().raw : undefined;
}
