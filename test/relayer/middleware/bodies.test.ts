/** Bodies of requests: content types, sizes, encodings, and bodies that never arrive. */
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { codeOf, send } from "../../support/http";
import { useApiAccount, useStack } from "../../support/stack";

describe("bodies of requests", () => {
  const stack = useStack();
  const account = useApiAccount();
  let base: string;
  before(() => void (base = stack().baseUrl));

  const post = (body: Buffer, headers: Record<string, string>) => account().api.post("/add_group", body, { headers });
  const good = Buffer.from(JSON.stringify({ group_name: "", group_description: "" }));

  it("need a JSON type, else 415; charset and encoding must be UTF-8 and none", async () => {
    const refused: Record<string, string>[] = [
      { "content-type": "text/plain" },
      { "content-type": "application/x-www-form-urlencoded" },
      { "content-type": "application/json; charset=latin1" },
      { "content-type": "application/json", "content-encoding": "gzip" },
    ];
    for (const headers of refused) {
      const answer = await post(headers["content-encoding"] === undefined ? good : gzipSync(good), headers);
      expect([answer.status, codeOf(answer)], JSON.stringify(headers)).to.deep.equal([415, "unsupported_media_type"]);
    }
  });

  it("of any JSON type are accepted", async () => {
    for (const type of [
      "application/json",
      "application/json; charset=utf-8",
      "application/vnd.acme+json",
      "APPLICATION/JSON; charset=UTF-8",
    ]) {
      expect(
        (
          await account().api.post("/remove_group", Buffer.from('{"group_id":99}'), {
            headers: { "content-type": type },
          })
        ).status,
        type,
      ).to.equal(404);
    }
  });

  it("that are absent count as {}, without a content type", async () => {
    const answer = await send(`${base}/core/v1/remove_group`, {
      method: "POST",
      key: account().key,
      headers: { "content-type": "text/plain" },
    });
    expect([answer.status, codeOf(answer)]).to.deep.equal([422, "invalid_body"]);
  });

  it("in chunks need a content type only if they are not empty", async () => {
    const inChunks = (text: string): Promise<Response> =>
      fetch(`${base}/core/v1/remove_group`, {
        method: "POST",
        headers: { "x-api-key": account().key },
        body: new ReadableStream({
          start: (controller) => {
            if (text !== "") controller.enqueue(Buffer.from(text));
            controller.close();
          },
        }),
        duplex: "half",
      } as RequestInit);
    expect((await inChunks("")).status, "as {}").to.equal(422);
    expect((await inChunks('{"group_id":1}')).status).to.equal(415);
  });

  it("in invalid UTF-8 are 400", async () => {
    const answer = await post(
      Buffer.concat([Buffer.from('{"group_name":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]),
      {},
    );
    expect([answer.status, codeOf(answer)]).to.deep.equal([400, "malformed_json"]);
  });

  it("nested too deeply are 400, not a stack overflow", async () => {
    const deep = Buffer.from(`{"code":"1","js_params":{"a":${"[".repeat(200_000)}${"]".repeat(200_000)}}}`);
    const answer = await account().api.post("/run_action", deep);
    expect([answer.status, codeOf(answer)]).to.deep.equal([400, "invalid_value"]);
  });

  it("above the route's size limit are 413: declared, and chunked", async () => {
    const large = Buffer.concat([Buffer.from('{"group_name":"'), Buffer.alloc(1024 * 1024, "a"), Buffer.from('"}')]);
    expect((await post(large, {})).status).to.equal(413);
    expect(
      codeOf(await account().api.post("/run_action", { code: "1", js_params: { a: "x".repeat(131_072) } })),
    ).to.equal("params_too_large");
    const chunked = (headers: Record<string, string>): Promise<Response> =>
      fetch(`${base}/core/v1/add_group`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: new Blob([large]).stream(),
        duplex: "half",
      } as RequestInit);
    expect((await chunked({ "x-api-key": account().key })).status, "chunked").to.equal(413);
    expect((await chunked({})).status, "a stranger's chunked body is not read").to.equal(401);
  });

  it("of signature routes are limited to 8 KiB", async () => {
    const answer = await send(`${base}/core/v1/create_wallet_with_signature`, {
      method: "POST",
      body: { typed_data: "x".repeat(8_192), signature: "0x" },
    });
    expect([answer.status, codeOf(answer)]).to.deep.equal([413, "payload_too_large"]);
  });

  it(
    "that never arrive do not hold the connection: a truncated body is answered or " +
      "dropped, the service keeps running",
    async () => {
      const { hostname, port } = new URL(base);
      await new Promise<void>((resolve) => {
        const socket = connect(Number(port), hostname, () => {
          socket.write(
            "POST /core/v1/new_account HTTP/1.1\r\nHost: x\r\nContent-Type: " +
              "application/json\r\nContent-Length: 100\r\n\r\n{",
          );
          setTimeout(() => socket.destroy(), 50);
        });
        socket.on("close", () => resolve());
      });
      expect((await send(`${base}/health`)).status).to.equal(200);
    },
  );
});
