/** A temporary PostgreSQL from Debian's packages for tests and benches: its own folder and port, removed afterwards. */
import { execFile, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { chmod, chown, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "./ports";

const run = promisify(execFile);

export interface TestPostgres {
  /** Connection string of the database `postgres`, as its superuser. */
  readonly url: string;
  /** The server's main process, the parent of the others. */
  readonly pid: number;
  /** Makes an empty database and returns its connection string. */
  database(name: string): Promise<string>;
  /** Kills the server with SIGKILL, then starts it with recovery: as after a power cut. */
  crash(): Promise<void>;
  stop(): Promise<void>;
}

/** PostgreSQL refuses to run as root; run it as `nobody` then. */
const asRoot = userInfo().uid === 0;
const NOBODY = 65_534;

export async function startPostgres(): Promise<TestPostgres> {
  const programs = await findPrograms();
  const folder = await mkdtemp(join(tmpdir(), "postgres-"));
  await chmod(folder, 0o700);
  if (asRoot) await chown(folder, NOBODY, NOBODY);
  const server = new Server(programs, folder, await freePort());
  await server.initialise();
  await server.start();
  const url = (database: string): string => `postgresql://app@127.0.0.1:${server.port}/${database}`;
  return {
    url: url("postgres"),
    pid: server.pid,
    database: async (name) => {
      await server.execute("createdb", ["-h", "127.0.0.1", "-p", String(server.port), "-U", "app", name]);
      return url(name);
    },
    crash: async () => {
      await server.stop("immediate");
      await server.start();
    },
    stop: async () => {
      await server.stop("immediate");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Debian's folder of server programs, newest version first. */
async function findPrograms(): Promise<string> {
  const root = "/usr/lib/postgresql";
  const versions = existsSync(root) ? (await readdir(root)).sort((a, b) => Number(b) - Number(a)) : [];
  const found = versions.map((version) => join(root, version, "bin")).find((bin) => existsSync(join(bin, "initdb")));
  if (found === undefined) throw new Error("PostgreSQL's server programs are missing: apt-get install postgresql");
  return found;
}

class Server {
  readonly #programs: string;
  readonly #folder: string;

  constructor(
    programs: string,
    folder: string,
    readonly port: number,
  ) {
    this.#programs = programs;
    this.#folder = folder;
  }

  async execute(program: string, args: readonly string[]): Promise<void> {
    const path = join(this.#programs, program);
    const identity = asRoot ? { uid: NOBODY, gid: NOBODY } : {};
    await run(path, [...args], { ...identity, cwd: this.#folder, env: { LC_ALL: "C", PATH: process.env.PATH } });
  }

  initialise(): Promise<void> {
    return this.execute("initdb", [
      "-D",
      this.#data,
      "-A",
      "trust",
      "-U",
      "app",
      "--no-sync",
      "-E",
      "UTF8",
      "--locale=C",
    ]);
  }

  async start(): Promise<void> {
    const options =
      `-c listen_addresses=127.0.0.1 -c port=${this.port} -c ` +
      `unix_socket_directories=${this.#folder} -c ` +
      "max_connections=200";
    await this.#control("start", ["-w", "-l", join(this.#folder, "log"), "-o", options]);
  }

  get pid(): number {
    return Number(readFileSync(join(this.#data, "postmaster.pid"), "utf8").split("\n")[0]);
  }

  async stop(mode: "fast" | "immediate"): Promise<void> {
    await this.#control("stop", ["-w", "-m", mode]);
  }

  /** `pg_ctl start` leaves the server running with inherited streams: do not wait for them to close. */
  #control(verb: string, args: readonly string[]): Promise<void> {
    const identity = asRoot ? { uid: NOBODY, gid: NOBODY } : {};
    const child = spawn(join(this.#programs, "pg_ctl"), ["-D", this.#data, ...args, verb], {
      ...identity,
      cwd: this.#folder,
      stdio: "ignore",
      env: { LC_ALL: "C" },
    });
    return new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code) =>
        code === 0
          ? resolve()
          : reject(new Error(`pg_ctl ${verb} ended with ${code}; see ${join(this.#folder, "log")}`)),
      );
    });
  }

  get #data(): string {
    return join(this.#folder, "data");
  }
}
