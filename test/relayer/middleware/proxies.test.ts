/** The client address: X-Forwarded-For is trusted for the configured number of hops, and no further. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import fc from "fast-check";
import Koa from "koa";
import { pino } from "pino";
import { defined } from "../../../protocol/defined";
import { createApp, type AppOptions } from "../../../relayer/app";
import { clientAddress } from "../../../relayer/middleware/context";
import { KeywrightError } from "../../../protocol/errors";
import { SEED } from "../../support/counts";
import { send } from "../../support/http";

describe("addresses behind proxies", () => {
  const servers: Server[] = [];
  after(() => servers.forEach((server) => server.close()));

  /** An app whose address limit only records the address; nothing behind it is reached. */
  async function seenBy(trustedProxyHops: number, forwardedFor: string | undefined): Promise<string[]> {
    const seen: string[] = [];
    const limits = {
      request: async (group: string) => {
        seen.push(group);
        throw new KeywrightError("rate_limited", "noted", {}, { retryAfterSeconds: 7.2 });
      },
    };
    const options = {
      handlers: {},
      limits,
      log: pino({ level: "silent" }),
      serviceName: "Keywright",
      trustedProxyHops,
      onAnswered: () => undefined,
    };
    const server = createServer(createApp(options as unknown as AppOptions).callback());
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/core/v1/new_account`;
    const answer = await send(url, {
      method: "POST",
      headers: forwardedFor === undefined ? {} : { "x-forwarded-for": forwardedFor },
    });
    expect([answer.status, answer.headers["retry-after"]]).to.deep.equal([429, "8"]);
    return seen;
  }

  it("without proxies the header is ignored", async () =>
    expect(await seenBy(0, "203.0.113.7")).to.deep.equal(["127.0.0.1"]));
  it("one proxy: its own entry, the last", async () =>
    expect(await seenBy(1, "6.6.6.6, 203.0.113.7")).to.deep.equal(["203.0.113.7"]));
  it("two proxies: the entry added by the outer one", async () =>
    expect(await seenBy(2, "6.6.6.6, 203.0.113.7, 10.0.0.1")).to.deep.equal(["203.0.113.7"]));
  it("a proxy that adds nothing: the connection's own address", async () =>
    expect(await seenBy(1, undefined)).to.deep.equal(["127.0.0.1"]));

  it("who reads answers slowly is counted by the same address", () =>
    fc.assert(
      fc.property(
        fc.option(fc.array(fc.constantFrom("203.0.113.7", "6.6.6.6", " ", "", ",", ", "), { maxLength: 5 })),
        fc.integer({ min: 0, max: 3 }),
        (parts, hops) => {
          const forwardedFor = parts?.join(",");
          const request = {
            headers: defined({ "x-forwarded-for": forwardedFor }),
            socket: { remoteAddress: "127.0.0.1" },
          } as unknown as IncomingMessage;
          const app = new Koa({ proxy: hops > 0, maxIpsCount: hops });
          expect(clientAddress(request, hops)).to.equal(app.createContext(request, {} as ServerResponse).ip);
        },
      ),
      { seed: SEED },
    ));
});
