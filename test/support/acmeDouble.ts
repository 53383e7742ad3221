/**
 * An ACME authority (RFC 8555) for tests: checks the signature and nonce of every request, fetches the challenge's
 * answer over HTTP as a real one does, and issues the requested certificates under its own root.
 */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { calculateJwkThumbprint, flattenedVerify, importJWK, type JWK } from "jose";
import { issueCertificate, pem, x509, type Authority } from "../../scripts/dev/tee/certificates";

const DAY_MS = 86_400_000;

export interface AcmeDouble {
  readonly directoryUrl: string;
  /** PEM of the root under which it issues. */
  readonly rootPem: string;
  /** How many certificates it has issued. */
  issued(): number;
  /** Sets the lifetime of certificates from now on; default 90 days. */
  setLife(ms: number): void;
  stop(): Promise<void>;
}

interface Order {
  readonly domain: string;
  readonly token: string;
  status: "pending" | "ready" | "valid" | "invalid";
  chain?: string;
}
interface Account {
  readonly jwk: JWK;
}
interface Call {
  readonly path: string;
  readonly payload: Record<string, unknown>;
  readonly jwk: JWK;
  readonly account: string | undefined;
}
interface Answer {
  readonly status?: number;
  readonly location?: string;
  readonly body: unknown;
}

class Problem extends Error {
  constructor(
    readonly type: string,
    detail: string,
    readonly status = 400,
  ) {
    super(detail);
  }
}

/** `challengePort` is the port on which this machine answers challenges; in production, port 80. */
export async function startAcmeDouble(challengePort: () => number): Promise<AcmeDouble> {
  const root = await issueCertificate({ name: "Test authority", isAuthority: true });
  const double = new Double(root, challengePort);
  const server = createServer((request, response) => void double.serve(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  double.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    directoryUrl: `${double.origin}/directory`,
    rootPem: pem(root),
    issued: () => double.issued,
    setLife: (ms) => (double.lifeMs = ms),
    stop: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

class Double {
  origin = "";
  issued = 0;
  lifeMs = 90 * DAY_MS;
  readonly #nonces = new Set<string>();
  readonly #accounts = new Map<string, Account>();
  readonly #orders = new Map<string, Order>();
  readonly #root: Authority;
  readonly #challengePort: () => number;

  constructor(root: Authority, challengePort: () => number) {
    this.#root = root;
    this.#challengePort = challengePort;
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const nonce = randomBytes(16).toString("base64url");
    this.#nonces.add(nonce);
    response.setHeader("replay-nonce", nonce);
    try {
      const { status = 200, location, body } = await this.#answer(request);
      if (location !== undefined) response.setHeader("location", location);
      const isPem = typeof body === "string";
      response.writeHead(status, { "content-type": isPem ? "application/pem-certificate-chain" : "application/json" });
      response.end(isPem ? body : JSON.stringify(body));
    } catch (error) {
      const { type, status } = error instanceof Problem ? error : new Problem("serverInternal", String(error), 500);
      response.writeHead(status, { "content-type": "application/problem+json" });
      response.end(JSON.stringify({ type: `urn:ietf:params:acme:error:${type}`, detail: (error as Error).message }));
    }
  }

  async #answer(request: IncomingMessage): Promise<Answer> {
    const path = request.url ?? "";
    if (path === "/directory") {
      const at = (name: string): string => `${this.origin}/${name}`;
      return {
        body: {
          newNonce: at("nonce"),
          newAccount: at("account"),
          newOrder: at("order"),
          revokeCert: at("revoke"),
          keyChange: at("key-change"),
          meta: {},
        },
      };
    }
    if (path === "/nonce") return { body: {} };
    const call = await this.#verified(path, request);
    const [, kind = "", id = ""] = path.split("/");
    if (kind === "account" && id === "") return this.#newAccount(call);
    if (kind === "account") return { body: { status: "valid" } };
    if (kind === "order" && id === "") return this.#newOrder(call);
    return this.#aboutOrder(kind, id, call);
  }

  async #aboutOrder(kind: string, id: string, call: Call): Promise<Answer> {
    const order = this.#orders.get(id);
    if (order === undefined) throw new Problem("malformed", "there is no such order", 404);
    if (kind === "order") return { body: this.#orderBody(id, order) };
    if (kind === "authorization") return { body: this.#authorizationBody(id, order) };
    if (kind === "challenge") return this.#validate(id, order, call);
    if (kind === "finalize") return this.#finalize(id, order, call);
    if (kind === "certificate" && order.chain !== undefined) return { body: order.chain };
    throw new Problem("malformed", `nothing is at ${call.path}`, 404);
  }

  /** RFC 8555, 6.2 to 6.5: signature, address and nonce. */
  async #verified(path: string, request: IncomingMessage): Promise<Call> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const jws = JSON.parse(Buffer.concat(chunks).toString()) as {
      protected: string;
      payload: string;
      signature: string;
    };
    const header = JSON.parse(Buffer.from(jws.protected, "base64url").toString()) as {
      jwk?: JWK;
      kid?: string;
      nonce: string;
      url: string;
    };
    if (!this.#nonces.delete(header.nonce)) throw new Problem("badNonce", "this nonce was not given, or used before");
    if (header.url !== this.origin + path)
      throw new Problem("unauthorized", "the request was signed for another address", 401);
    const jwk = header.jwk ?? this.#accounts.get(header.kid ?? "")?.jwk;
    if (jwk === undefined) throw new Problem("accountDoesNotExist", "there is no such account");
    await flattenedVerify(jws, await importJWK(jwk, "ES256"));
    const text = Buffer.from(jws.payload, "base64url").toString();
    return {
      path,
      payload: text === "" ? {} : (JSON.parse(text) as Record<string, unknown>),
      jwk,
      account: header.kid,
    };
  }

  #newAccount({ jwk }: Call): Answer {
    const hash = createHash("sha256").update(JSON.stringify(jwk)).digest("hex");
    const location = `${this.origin}/account/${hash.slice(0, 16)}`;
    this.#accounts.set(location, { jwk });
    return { status: 201, location, body: { status: "valid" } };
  }

  #newOrder({ payload }: Call): Answer {
    const [identifier] = payload["identifiers"] as { value: string }[];
    const id = randomBytes(8).toString("hex");
    const order: Order = {
      domain: identifier?.value ?? "",
      token: randomBytes(24).toString("base64url"),
      status: "pending",
    };
    this.#orders.set(id, order);
    return { status: 201, location: `${this.origin}/order/${id}`, body: this.#orderBody(id, order) };
  }

  #orderBody(id: string, { status, domain, chain }: Order): object {
    const certificate = chain === undefined ? {} : { certificate: `${this.origin}/certificate/${id}` };
    const identifiers = [{ type: "dns", value: domain }];
    return {
      status,
      identifiers,
      authorizations: [`${this.origin}/authorization/${id}`],
      finalize: `${this.origin}/finalize/${id}`,
      ...certificate,
    };
  }

  #authorizationBody(id: string, { status, domain, token }: Order): object {
    const known = status === "pending" || status === "invalid" ? status : "valid";
    const challenge = { type: "http-01", url: `${this.origin}/challenge/${id}`, token, status: known };
    return { status: known, identifier: { type: "dns", value: domain }, challenges: [challenge] };
  }

  async #validate(id: string, order: Order, { jwk }: Call): Promise<Answer> {
    const url = `http://127.0.0.1:${this.#challengePort()}/.well-known/acme-challenge/${order.token}`;
    const answer = await fetch(url).then(
      (response) => response.text(),
      () => "nobody answers",
    );
    order.status = answer === `${order.token}.${await calculateJwkThumbprint(jwk)}` ? "ready" : "invalid";
    return {
      body: {
        type: "http-01",
        url: `${this.origin}/challenge/${id}`,
        token: order.token,
        status: order.status === "ready" ? "valid" : "invalid",
      },
    };
  }

  async #finalize(id: string, order: Order, { payload }: Call): Promise<Answer> {
    if (order.status !== "ready") throw new Problem("orderNotReady", "the challenge is not met", 403);
    const request = new x509.Pkcs10CertificateRequest(Buffer.from(String(payload["csr"]), "base64url"));
    if (!(await request.verify())) throw new Problem("badCSR", "the certificate request is not signed by its key");
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: randomBytes(8)
        .toString("hex")
        .replace(/^[89a-f]/, "1"),
      subject: `CN=${order.domain}`,
      issuer: this.#root.certificate.subject,
      notBefore: new Date(Date.now() - 1_000),
      notAfter: new Date(Date.now() + this.lifeMs),
      publicKey: request.publicKey,
      signingKey: this.#root.keys.privateKey,
      signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
      extensions: [new x509.SubjectAlternativeNameExtension([{ type: "dns", value: order.domain }])],
    });
    order.chain = `${certificate.toString("pem")}\n${pem(this.#root)}`;
    order.status = "valid";
    this.issued++;
    return { body: this.#orderBody(id, order) };
  }
}
