/** Messages to webhooks as the executor signs and sends them: what is signed, and what receivers can do to it. */
import { createPublicKey, verify } from "node:crypto";
import { createSocket } from "node:dgram";
import { expect } from "chai";
import type { KeywrightError } from "../../protocol/errors";
import { statementBytes } from "../../protocol/publicKeys";
import type { WebhookMessage } from "../../protocol/webhookCalls";
import { WEBHOOK_LIMITS } from "../../protocol/limits";
import { webhookBody, webhookSignedText } from "../../protocol/webhooks";
import { startReceiver } from "../support/webhookReceiver";
import { startWebhookBed, type WebhookBed } from "../support/webhookBed";

const MESSAGE: WebhookMessage = {
  id: `msg_${"0a".repeat(16)}`,
  type: "run.succeeded",
  timestamp: "2026-11-24T20:00:00.000Z",
  accountId: `0x${"6f".repeat(32)}`,
  data: { name: 'nul\u0000 \ud800 "quoted" 💥' },
};
const never = new AbortController().signal;

/** Answers every question for an address with the present ones. */
async function startNameServer(present: () => readonly string[]): Promise<{ address: string; stop(): void }> {
  const socket = createSocket("udp4");
  socket.on("message", (question, { port, address }) => {
    // Of the question only the name, up to its empty label, and its type and class.
    const end = question.indexOf(0, 12) + 5;
    const isForIpv4 = question.readUInt16BE(end - 4) === 1;
    const answers = (isForIpv4 ? present() : []).map((ip) =>
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...ip.split(".").map(Number)]),
    );
    const header = Buffer.from([question[0] ?? 0, question[1] ?? 0, 0x81, 0x80, 0, 1, 0, answers.length, 0, 0, 0, 0]);
    socket.send(Buffer.concat([header, question.subarray(12, end), ...answers]), port, address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return { address: `127.0.0.1:${socket.address().port}`, stop: () => void socket.close() };
}

describe("messages to webhooks", function () {
  this.timeout(60_000);
  let bed: WebhookBed;
  before(async () => {
    bed = await startWebhookBed();
  });
  after(() => bed?.stop());

  it("are signed over id, time of the signature and body, in a form that no other statement has", () => {
    const { timestamp, body, signature } = bed.webhooks.sign(MESSAGE);
    const x = Buffer.from(bed.statementKey.publicKey.slice(2), "hex").toString("base64url");
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
    const signed = webhookSignedText(MESSAGE.id, timestamp, body);
    expect(verify(null, Buffer.from(signed), key, Buffer.from(signature.slice(4), "base64"))).to.equal(true);
    expect(Math.abs(Date.now() / 1_000 - timestamp)).to.be.below(5);
    expect(signed).to.match(/^msg_[0-9a-f]{32}\.[0-9]+\.\{"type":"run\.succeeded","timestamp":"[^"]*","account_id":"/);
    expect(JSON.parse(body)).to.deep.equal({
      type: MESSAGE.type,
      timestamp: MESSAGE.timestamp,
      account_id: MESSAGE.accountId,
      data: MESSAGE.data,
    });
    // What else the key signs begins otherwise, and as base64url this begins no JSON object.
    const statement = { key_namespace: "", pkp_id: "", derivation_path: "", keys: [] };
    expect(statementBytes(statement).subarray(0, 4).toString()).not.to.equal("msg_");
    expect(Buffer.from('{"alg"').toString("base64url").slice(0, 4)).not.to.equal("msg_");
    expect(Buffer.from(signed.split(".")[0] ?? "", "base64url")[0]).not.to.equal("{".charCodeAt(0));
  });

  it("are refused above their size", () => {
    const large = { ...MESSAGE, data: { text: "x".repeat(WEBHOOK_LIMITS.bodyBytes) } };
    expect(() => bed.webhooks.sign(large)).to.throw("payload_too_large");
  });

  it("arrive byte for byte as signed; a long answer is cut", async () => {
    const receiver = await startReceiver();
    receiver.answer((response) => response.writeHead(200).end("x".repeat(1_000_000)));
    const outcome = await bed.webhooks.send(receiver.url, MESSAGE, never);
    expect(outcome).to.include({ status: 200, answer: "x".repeat(WEBHOOK_LIMITS.answerBytes) });
    expect(receiver.received[0]?.body).to.equal(webhookBody(MESSAGE));
    await receiver.stop();
  });

  it("follow no redirect, and say why there is no answer", async () => {
    const target = await startReceiver();
    const receiver = await startReceiver();
    receiver.answer((response) => response.writeHead(302, { location: target.url }).end());
    expect(await bed.webhooks.send(receiver.url, MESSAGE, never)).to.include({ status: 302 });
    receiver.answer((response) => response.destroy());
    expect((await bed.webhooks.send(receiver.url, MESSAGE, never)).failure).to.be.a("string");
    await receiver.stop();
    expect((await bed.webhooks.send(receiver.url, MESSAGE, never)).failure).to.contain("refused");
    expect(target.received).to.deep.equal([]);
    await target.stop();
  });

  it("reach no address that is not public unless development permits its host", async () => {
    const strict = await startWebhookBed([]);
    const receiver = await startReceiver();
    try {
      for (const url of [
        receiver.url,
        "http://localhost/",
        "http://10.1.2.3/",
        "http://[::1]/",
        "ftp://example.com/",
      ]) {
        expect((await strict.webhooks.check(url)).problem, url).to.be.a("string");
        expect((await strict.webhooks.send(url, MESSAGE, never)).failure, url).to.be.a("string");
      }
      expect(receiver.received).to.deep.equal([]);
      expect(await bed.webhooks.check(receiver.url)).to.deep.equal({});
      expect((await bed.webhooks.check("http://192.168.0.1/")).problem).to.contain("not a public address");
    } finally {
      await receiver.stop();
      await strict.stop();
    }
  });

  it("go to no name that has become one of this machine since it was checked", async () => {
    const receiver = await startReceiver();
    const { port } = new URL(receiver.url);
    const addresses = ["93.184.215.14"];
    const names = await startNameServer(() => addresses);
    const strict = await startWebhookBed([], { dnsServers: [names.address], ports: [Number(port)] });
    try {
      const url = `http://receiver.test:${port}/hook`;
      expect(await strict.webhooks.check(url)).to.deep.equal({});
      for (const now of [["127.0.0.1"], ["93.184.215.14", "127.0.0.1"], ["169.254.169.254"]]) {
        addresses.splice(0, addresses.length, ...now);
        expect((await strict.webhooks.send(url, MESSAGE, never)).failure).to.contain("not a public address");
      }
      expect(receiver.received).to.deep.equal([]);
    } finally {
      await strict.stop();
      await receiver.stop();
      names.stop();
    }
  });

  it("say that nothing was tried while the fetcher is away or the name servers answer nobody", async () => {
    const receiver = await startReceiver();
    const silent = createSocket("udp4");
    await new Promise<void>((resolve) => silent.bind(0, "127.0.0.1", resolve));
    const away = await startWebhookBed();
    await away.stop();
    const nameless = await startWebhookBed([], { dnsServers: [`127.0.0.1:${silent.address().port}`] });
    const names = await startNameServer(() => []);
    const named = await startWebhookBed([], { dnsServers: [names.address] });
    try {
      for (const [one, url] of [
        [away, receiver.url],
        [nameless, "http://receiver.test/"],
      ] as const) {
        const asked = [one.webhooks.send(url, MESSAGE, never), one.webhooks.check(url)];
        for (const outcome of await Promise.allSettled(asked))
          expect(outcome.status === "rejected" && (outcome.reason as KeywrightError).code).to.equal(
            "executor_unavailable",
          );
      }
      expect((await named.webhooks.send("http://receiver.test/", MESSAGE, never)).failure).to.contain("resolved");
    } finally {
      await nameless.stop();
      await named.stop();
      await receiver.stop();
      silent.close();
      names.stop();
    }
  });

  it("end with their caller", async () => {
    const receiver = await startReceiver();
    receiver.answer(() => undefined);
    const caller = new AbortController();
    setTimeout(() => caller.abort(), 100);
    const began = Date.now();
    await bed.webhooks.send(receiver.url, MESSAGE, caller.signal);
    expect(Date.now() - began).to.be.below(5_000);
    await receiver.stop();
  });
});
