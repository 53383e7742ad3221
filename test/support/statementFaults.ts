/**
 * Fails the n-th statement from now on, before or after it took effect: as a simulated lost connection of the embedded
 * store, and as a real one by a proxy in front of PostgreSQL that tracks the boundaries of statements and answers.
 */
import { createServer, connect, type Server, type Socket } from "node:net";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { PostgresPool, PostgresPoolClient } from "kysely";
import { KeywrightError } from "../../protocol/errors";

export type Side = "before" | "after";

export class StatementFaults {
  /** Statements since `arm`. */
  seen = 0;
  hits = 0;
  #at = Infinity;
  /** After the fault no further statement is answered: the process that sends them has died. */
  staysDown = false;
  #side: Side = "before";
  /** Probability of a fault at any statement, for random histories. */
  #chance = 0;
  #random: () => number = Math.random;

  arm(nth: number, side: Side): void {
    this.seen = 0;
    this.#at = nth;
    this.#side = side;
  }

  /** From now on each statement fails with this probability. */
  failRandomly(chance: number, random: () => number): void {
    this.#chance = chance;
    this.#random = random;
  }

  disarm(): void {
    this.#at = Infinity;
    this.#chance = 0;
  }

  get wasHit(): boolean {
    return this.seen >= this.#at;
  }

  /** Called once for each statement: how it should fail, if at all. */
  next(): Side | undefined {
    this.seen += 1;
    if (this.staysDown && this.seen > this.#at) return "before";
    const side = this.seen === this.#at ? this.#side : this.#byChance();
    if (side !== undefined) this.hits += 1;
    return side;
  }

  #byChance(): Side | undefined {
    if (this.#chance === 0 || this.#random() >= this.#chance) return undefined;
    return this.#random() < 0.5 ? "before" : "after";
  }
}

/**
 * Wraps the embedded store's pool. A "lost" connection is unusable, and its open transaction is rolled back, as the
 * server does.
 */
export function failingPool(pool: PostgresPool, faults: StatementFaults): PostgresPool {
  return {
    connect: async () => failingClient(await pool.connect(), faults),
    end: () => pool.end(),
  };
}

function failingClient(client: PostgresPoolClient, faults: StatementFaults): PostgresPoolClient {
  let isLost = false;
  const execute = client.query as unknown as (sql: string, parameters: readonly unknown[]) => Promise<unknown>;
  const query = async (sql: string, parameters: readonly unknown[]): Promise<unknown> => {
    if (isLost) throw lost();
    const side = faults.next();
    if (side !== "before") {
      const answer = await execute(sql, parameters);
      if (side === undefined) return answer;
    }
    isLost = true;
    throw lost();
  };
  const release = (): void => {
    if (isLost)
      void execute("rollback", [])
        // A test that ends meanwhile closes the database.
        .catch(() => undefined)
        .finally(() => client.release());
    else client.release();
  };
  return { query: query as PostgresPoolClient["query"], release };
}

const lost = (): KeywrightError =>
  new KeywrightError(
    "database_unavailable",
    "The connection was lost (a fault of the test).",
    {},
    { retryAfterSeconds: 1 },
  );

/** A proxy between a relayer and PostgreSQL. */
export class PostgresProxy {
  readonly faults = new StatementFaults();
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isDown = false;
  readonly #target: URL;

  private constructor(target: URL) {
    this.#target = target;
    this.#server = createServer((client) => this.#serve(client));
  }

  static async start(databaseUrl: string): Promise<PostgresProxy> {
    const proxy = new PostgresProxy(new URL(databaseUrl));
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get url(): string {
    const url = new URL(this.#target);
    url.host = `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return url.href;
  }

  /** Cuts every connection and accepts none until `up`. */
  down(): void {
    this.#isDown = true;
    this.cut();
  }

  up(): void {
    this.#isDown = false;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #serve(client: Socket): void {
    if (this.#isDown) return void client.destroy();
    const server = connect(Number(this.#target.port), this.#target.hostname);
    for (const socket of [client, server]) {
      this.#sockets.add(socket.setNoDelay(true));
      socket.once("close", () => this.#sockets.delete(socket)).on("error", () => undefined);
    }
    const cut = (): void => {
      client.destroy();
      server.destroy();
    };
    client.once("close", cut);
    server.once("close", cut);
    let cutsAtAnswer = false;
    client.on(
      "data",
      batches((batch, isStatement) => {
        const side = isStatement ? this.faults.next() : undefined;
        if (side === "before") return cut();
        cutsAtAnswer = side === "after";
        server.write(batch);
      }),
    );
    server.on("data", (chunk: Buffer) => {
      if (!cutsAtAnswer) client.write(chunk);
      // ReadyForQuery ends every answer: six bytes, the last is the transaction status.
      else if (chunk.length >= 6 && chunk[chunk.length - 6] === READY) cut();
    });
  }
}

const READY = "Z".charCodeAt(0);
const QUERY = "Q".charCodeAt(0);
const SYNC = "S".charCodeAt(0);

/**
 * Splits a client's stream into statements: the messages up to a Sync, or one simple query. The first message (the
 * start-up message) has no type and is not a statement.
 */
function batches(each: (batch: Buffer, isStatement: boolean) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  let batch: Buffer[] = [];
  let hasGreeted = false;
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const header = hasGreeted ? 1 : 0;
      if (rest.length < header + 4) return;
      const length = header + rest.readUInt32BE(header);
      if (rest.length < length) return;
      const [message, type] = [rest.subarray(0, length), hasGreeted ? rest[0] : undefined];
      rest = rest.subarray(length);
      hasGreeted = true;
      batch.push(message);
      if (type !== undefined && type !== QUERY && type !== SYNC && isExtended(type)) continue;
      each(Buffer.concat(batch), type === QUERY || type === SYNC);
      batch = [];
    }
  };
}

/** Parse, Bind, Describe, Execute, Close, Flush: parts of a statement that a Sync ends. */
const EXTENDED = new Set([..."PBDECH"].map((letter) => letter.charCodeAt(0)));
const isExtended = (type: number): boolean => EXTENDED.has(type);
