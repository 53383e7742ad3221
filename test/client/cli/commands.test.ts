/** The commands are generated from the route table, without exception. */
import { expect } from "chai";
import type { Command } from "commander";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmSync, rmdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { ROUTES } from "../../../protocol/http";
import { ALL_OPERATIONS } from "../../../client/operations";
import { DEFAULT_URL, settingsOf } from "../../../client/cli/config";
import { runCli } from "../../../client/cli/program";
import { secretFile } from "../../../client/cli/keeping";
import { commandSpecs, specOf } from "../../../client/cli/spec";
import { withProgress, type Io } from "../../../client/cli/io";
import { oneLine, readable, table } from "../../../client/cli/text";
import { shownProgram } from "../../../scripts/cliHelp";
import { testCli, type TestCli } from "../../support/cli";

const names = (command: Command, words: string[] = []): string[] => [
  ...(words.length === 0 ? [] : [words.join(" ")]),
  ...command.commands.flatMap((one) => names(one, [...words, one.name()])),
];

const PROGRAM = join(__dirname, "..", "..", "..", "dist", "client", "cli", "main.js");
const CID = "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKnR8p";

describe("the commands of the command line", () => {
  let cli: TestCli;
  before(() => (cli = testCli()));
  after(() => cli.remove());

  it("go on to their end although nobody reads their output any more", async () => {
    const program = spawn(process.execPath, [PROGRAM, "--help"]);
    program.stdout.destroy();
    let said = "";
    program.stderr.on("data", (piece: Buffer) => (said += piece.toString()));
    const [code] = (await once(program, "close")) as [number | null];
    expect([code, said]).to.deep.equal([0, ""]);
  });

  it("exist for every operation of the SDK", () => {
    const program = shownProgram();
    const known = names(program);
    for (const { words } of commandSpecs()) expect(known).to.include(words.join(" "));
    expect(commandSpecs().length + 3, "run, cid and export are written by hand").to.equal(ALL_OPERATIONS.length);
    for (const word of [
      "login",
      "account",
      "pkp",
      "group",
      "action",
      "key",
      "run",
      "cid",
      "logs",
      "billing",
      "verify",
      "receipt",
      "safe",
      "completion",
    ])
      expect(known).to.include(word);
  });

  it("have no option that the program would take for its own", () => {
    const own = shownProgram().options.map(({ long }) => long);
    for (const { words, fields } of commandSpecs())
      for (const { positional, option } of fields)
        if (!positional) expect(own, words.join(" ")).not.to.include(`--${option}`);
    const { fields } = specOf("createWebhook");
    expect(fields.map(({ option }) => option)).to.include("webhook-url");
  });

  it("take the fields of the schemas: required ones as arguments, the others as options", () => {
    const { fields } = specOf("addUsageApiKey");
    expect(fields.map(({ name }) => name)).to.deep.equal(Object.keys(ROUTES.addUsageApiKey.request.body.shape));
    expect(fields.filter(({ positional }) => positional).map(({ name }) => name)).to.deep.equal(["name"]);
    expect(fields.find(({ name }) => name === "execute_in_groups")).to.include({
      kind: "list",
      option: "execute-in-groups",
      required: true,
    });
    expect(fields.find(({ name }) => name === "can_create_pkps")).to.include({ kind: "flag" });
    expect(specOf("addGroup").fields.find(({ name }) => name === "group_description")).to.include({
      option: "description",
      positional: false,
    });
  });

  it("reject a wrong command line with exit code 2, without sending a request", async () => {
    cli.env["KEYWRIGHT_URL"] = "http://127.0.0.1:1";
    for (const line of [
      "group create",
      "group create a b",
      "no-such-thing",
      "group list --no-such-option",
      "run missing.js",
      "run x.js --params [1]",
      "run x.js --params {} --params-file x.json",
      `policy transfer-limits --chain 1 --to 0x${"a1".repeat(20)} --max 1 --threshold 2`,
      "completion tcsh",
    ]) {
      const { code, err } = await cli.run(line);
      expect([code, err !== ""], `${line}: ${err}`).to.deep.equal([2, true]);
    }
  });

  it("reject that of a verifier with exit code 4, since 2 is its verdict on a simulated service", async () => {
    for (const line of [
      "verify ftp://x",
      "verify --no-such-option",
      "verify --url",
      "--no-such-option verify http://127.0.0.1:1",
      "--json receipt missing.json --profile",
      "verify http://127.0.0.1:1 --rpc ftp://x",
      "verify http://127.0.0.1:1 --contract 0x12",
      "receipt",
      "receipt missing.json",
      "--json receipt missing.json",
      "--json receipt",
    ]) {
      const { code, out, err } = await cli.run(line);
      expect([code, out, err !== ""], `${line}: ${err}`).to.deep.equal([4, "", true]);
    }
    expect((await cli.run("verify --help")).code).to.equal(0);
  });

  describe("and a stored key, which may be its only copy", () => {
    const KEY = `${"B".repeat(43)}=`;
    let file: string;
    beforeEach(() => {
      file = join(cli.cwd, "credentials.json");
      const profiles = { default: { url: "http://127.0.0.1:1", api_key: KEY } };
      writeFileSync(file, JSON.stringify({ profiles }), { mode: 0o600 });
    });
    afterEach(() => rmSync(file, { force: true }));

    it("is not replaced by another login, which says so before it sends anything", async () => {
      cli.secrets.push(`${"C".repeat(43)}=`);
      // A wallet's is refused before it asks for a password.
      for (const line of ["login --wallet wallet.json --rpc http://127.0.0.1:1", "login"]) {
        const { code, err } = await cli.run(line);
        expect([code, err], line).to.deep.equal([2, err]);
        expect(err).to.include("only copy").and.to.include("keywright logout --profile default");
        expect(cli.secrets).to.have.length(line === "login" ? 0 : 1);
      }
      expect(readFileSync(file, "utf8")).to.include(KEY);
    });

    it("may be stored again, for another address too, beside what a newer program stored", async () => {
      const wallet = { url: "http://127.0.0.1:1", wallet_file: "w", rpc_url: "r", pinned: 1 };
      const profiles = { default: { url: "http://127.0.0.1:1", api_key: KEY }, wallet };
      writeFileSync(file, JSON.stringify({ profiles, version: 2 }), { mode: 0o600 });
      const service = createServer((_, response) => response.end("true"));
      await once(service.listen(0, "127.0.0.1"), "listening");
      const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
      try {
        cli.secrets.push(KEY);
        await cli.ok(`--url ${url} login`);
        const stored: unknown = JSON.parse(readFileSync(file, "utf8"));
        expect(stored).to.deep.equal({ profiles: { default: { url, api_key: KEY }, wallet }, version: 2 });
      } finally {
        service.close();
      }
    });

    it("is not given up for a file that cannot be read", async () => {
      writeFileSync(file, `{"profiles": {"default": {"api_key": "${KEY}"`, { mode: 0o600 });
      const { code, err } = await cli.run("login");
      expect([code, err]).to.deep.equal([2, err]);
      expect(err).to.include("move it away").and.to.not.include("remove");
    });

    it("is forgotten without a question where nobody can be asked", async () => {
      const io = { env: cli.env, cwd: cli.cwd, out: () => undefined, err: () => undefined } as unknown as Io;
      expect(await runCli(["logout"], { ...io, confirm: async () => undefined })).to.equal(0);
      expect(readFileSync(file, "utf8")).to.not.include(KEY);
    });

    it("is forgotten only by who agrees", async () => {
      const { code, err } = await cli.run("logout");
      expect([code, err]).to.deep.equal([2, err]);
      expect(err).to.include("only copy").and.to.include("--yes");
      expect(readFileSync(file, "utf8")).to.include(KEY);
      await cli.ok("logout --yes");
      expect(readFileSync(file, "utf8")).to.not.include(KEY);
      expect((await cli.run("--profile constructor logout --yes")).code).to.equal(2);
    });

    it("waits for another program that changes the logins, and says which lock one has left behind", async () => {
      const lock = `${file}.lock`;
      writeFileSync(lock, "");
      const other = spawn("sh", ["-c", 'sleep 0.3; rm "$0"', lock]);
      const ended = once(other, "close");
      await cli.ok("logout --yes");
      await ended;
      expect(existsSync(lock)).to.equal(false);
      writeFileSync(lock, "");
      const { code, err } = await cli.run("account create Acme --login");
      expect([code, err]).to.deep.equal([2, err]);
      expect(err).to.include(`remove ${lock}`);
      rmSync(lock);
    }).timeout(10_000);

    it("is not asked for where it could not be stored", async () => {
      let requests = 0;
      const service = createServer((_, response) => {
        requests += 1;
        response.end("{}");
      });
      await once(service.listen(0, "127.0.0.1"), "listening");
      const elsewhere = testCli({
        KEYWRIGHT_URL: `http://127.0.0.1:${(service.address() as AddressInfo).port}`,
        KEYWRIGHT_CONFIG: join(file, "credentials.json"),
      });
      try {
        const { code, err } = await elsewhere.run("account create Acme --login");
        expect([code, requests, err]).to.deep.equal([2, 0, err]);
        expect(err).to.include("cannot be written");
      } finally {
        elsewhere.remove();
        service.close();
      }
    });
  });

  const PROD = { prod: { url: "http://127.0.0.1:1", api_key: `${"B".repeat(43)}=` } };

  it("are refused where the environment names both a login and a credential, and no other service", async () => {
    writeFileSync(join(cli.cwd, "credentials.json"), JSON.stringify({ profiles: PROD }), { mode: 0o600 });
    const env = { ...cli.env, KEYWRIGHT_PROFILE: "prod", KEYWRIGHT_URL: undefined };
    for (const name of ["KEYWRIGHT_API_KEY", "KEYWRIGHT_WALLET_FILE"]) {
      const given = { ...env, [name]: "given", KEYWRIGHT_RPC_URL: "http://127.0.0.1:1" };
      expect(() => settingsOf(given, {})).to.throw(`KEYWRIGHT_PROFILE=prod and ${name}`);
      const url = "http://127.0.0.1:2";
      for (const settings of [settingsOf(given, { url }), settingsOf({ ...given, KEYWRIGHT_URL: url }, {})])
        expect(settings.url).to.equal(url);
      // No login of the name, so none of its service.
      expect(settingsOf({ ...given, KEYWRIGHT_PROFILE: "new" }, {}).url).to.equal(DEFAULT_URL);
    }
  });

  it("are refused where flag and environment name a login each", async () => {
    writeFileSync(join(cli.cwd, "credentials.json"), JSON.stringify({ profiles: PROD }), { mode: 0o600 });
    for (const name of ["KEYWRIGHT_API_KEY", "KEYWRIGHT_WALLET_FILE"]) {
      cli.env[name] = `${"A".repeat(43)}=`;
      const { code, err } = await cli.run("--profile prod group list");
      expect([code, err]).to.deep.equal([2, err]);
      expect(err).to.include("--profile prod").and.to.include(name);
      cli.env[name] = undefined;
    }
  });

  it("report a wrong command line as JSON where --json is given", async () => {
    for (const line of [
      "--json group create",
      "group list --no-such-option --json",
      "--json no-such-thing",
      "--json group",
    ]) {
      const { code, out, err } = await cli.run(line);
      expect([code, out], line).to.deep.equal([2, ""]);
      expect((JSON.parse(err) as { error: object }).error, line).to.include({ code: "wrong_use" });
    }
  });

  it("refuse http to another machine before anything is sent or asked, unless it is allowed", async () => {
    const remote = "http://keys.example";
    for (const words of ["group list", "login", "account create Acme", "init project"]) {
      const line = `--url ${remote} ${words}`;
      const { code, err } = await cli.run(line);
      expect([code, err], line).to.deep.equal([2, err]);
      expect(err).to.include("--insecure");
    }
    expect((await cli.run("--url http://0.0.0.0:1 --insecure service health")).code).to.equal(3);
  }).timeout(20_000);

  it("name their version, that of the package", async () => {
    const { version } = JSON.parse(readFileSync(join(__dirname, "..", "..", "..", "package.json"), "utf8")) as Record<
      string,
      string
    >;
    expect((await cli.ok("--version")).out).to.equal(`${version}\n`);
  });

  it("exit with 3 and name the error code when the service is unreachable", async () => {
    const { code, err } = await cli.run("--json service health");
    expect(code).to.equal(3);
    expect(JSON.parse(err)).to.have.nested.property("error.code", "network_failed");
  }).timeout(20_000);

  it("name the idempotency key of a request whose answer was lost, which repeats it", async () => {
    const seen: unknown[] = [];
    const service = createServer((request, response) => {
      seen.push(request.headers["idempotency-key"]);
      if (seen.length > 4) response.end("{}");
      else request.socket.destroy();
    });
    await once(service.listen(0, "127.0.0.1"), "listening");
    cli.env["KEYWRIGHT_URL"] = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
    cli.env["KEYWRIGHT_API_KEY"] = `${"A".repeat(43)}=`;
    try {
      const { err } = await cli.run("--json group delete 1");
      const { error } = JSON.parse(err) as { error: { code: string; facts: { idempotency_key: string } } };
      const { idempotency_key } = error.facts;
      expect([error.code, new Set(seen)]).to.deep.equal(["network_failed", new Set([idempotency_key])]);
      await cli.ok(`--idempotency-key ${idempotency_key} group delete 1`);
      expect([seen.length, new Set(seen).size]).to.deep.equal([5, 1]);
      cli.env["KEYWRIGHT_API_KEY"] = undefined;
      seen.length = 0;
      const made = await cli.run("account create Acme");
      expect(made.err).to.include("network_failed").and.to.not.include(String(seen[0]));
    } finally {
      service.close();
      cli.env["KEYWRIGHT_API_KEY"] = undefined;
    }
  }).timeout(20_000);

  it("name it wherever the outcome is unknown, and nowhere else", async () => {
    const problem = (code: string, retryable: boolean): string => JSON.stringify({ code, detail: "d", retryable });
    const answers: [body: string, status: number, isTold: boolean][] = [
      [problem("submission_pending", true), 504, true],
      [problem("not_ready", true), 503, true],
      [problem("idempotency_in_progress", false), 409, true],
      ["<html>", 500, true],
      ["<html>", 200, true],
      [problem("unknown_group", false), 404, false],
    ];
    let answer = answers[0];
    const service = createServer((_, response) => {
      response.writeHead(answer?.[1] ?? 500, { "retry-after": "60" }).end(answer?.[0]);
    });
    await once(service.listen(0, "127.0.0.1"), "listening");
    cli.env["KEYWRIGHT_URL"] = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
    cli.env["KEYWRIGHT_API_KEY"] = `${"A".repeat(43)}=`;
    try {
      for (answer of answers)
        expect((await cli.run("group delete 1")).err.includes("idempotency_key"), answer[0]).to.equal(answer[2]);
    } finally {
      service.close();
      cli.env["KEYWRIGHT_API_KEY"] = undefined;
    }
  }).timeout(20_000);

  it("refuse an idempotency key that can be guessed, and one for several requests", async () => {
    cli.env["KEYWRIGHT_URL"] = "http://127.0.0.1:1";
    const safe = `safe --safe 0x${"a1".repeat(20)} --rpc http://127.0.0.1:1 --out batch.json group delete 1`;
    const refused = [
      [`${"a".repeat(31)} account create Acme`, "at least 32 random characters"],
      [`${"a".repeat(32)} ${safe}`, "makes several"],
      [`${"a".repeat(32)} webhooks listen --forward-to http://127.0.0.1:1`, "makes several"],
    ];
    for (const [line, words] of refused) {
      const { code, err } = await cli.run(`--idempotency-key ${line}`);
      expect([code, err], line).to.deep.equal([2, err]);
      expect(err).to.include(words);
    }
  });

  it("show a secret that its file cannot take, and leave there what was written before", () => {
    const shown: unknown[] = [];
    let told = "";
    const io = { cwd: cli.cwd, err: (text: string) => void (told += text) } as Io;
    const kept = secretFile({ io, print: (value) => shown.push(value) }, "kept.json");
    kept.write({ api_key: "first" });
    expect([shown, told]).to.deep.equal([[], ""]);
    const file = join(cli.cwd, "kept.json");
    // Where the disk is full, or the folder is gone.
    mkdirSync(`${file}.${process.pid}`);
    expect(() => kept.write({ api_key: "second" })).to.throw();
    rmdirSync(`${file}.${process.pid}`);
    expect(shown).to.deep.equal([{ api_key: "second" }]);
    expect(told).to.include("Shown after all");
    expect(JSON.parse(readFileSync(file, "utf8"))).to.deep.equal({ api_key: "first" });
  });

  it("complete in a real bash", async () => {
    const { out } = await cli.ok("completion bash");
    const file = join(cli.cwd, "completion.bash");
    writeFileSync(file, out);
    const complete = (...words: string[]): string[] => {
      const list = ["keywright", ...words].map((word) => `"${word}"`).join(" ");
      const script =
        `source "${file}"; COMP_WORDS=(${list}); COMP_CWORD=${words.length}; _keywright; printf '%s\\n' ` +
        `"\${COMPREPLY[@]}"`;
      return execFileSync("bash", ["-c", script], { encoding: "utf8" }).trim().split("\n");
    };
    expect(complete("gro")).to.deep.equal(["group"]);
    expect(complete("group", "add-")).to.deep.equal(["add-action", "add-pkp"]);
    expect(complete("--json", "key", "create", "--execute")).to.deep.equal(["--execute-in-groups"]);
    expect((await cli.ok("completion zsh")).out).to.include("bashcompinit");
    expect((await cli.ok("completion fish")).out).to.include("add-pkp");
  });

  it("say what they wait for after one second, and on a terminal for how long", async () => {
    const shown = async (terminal: boolean, ms: number): Promise<string> => {
      let err = "";
      const io = { terminal, err: (text: string) => void (err += text) } as Io;
      expect(
        await withProgress(io, "running", new Promise((resolve) => setTimeout(() => resolve("done"), ms))),
      ).to.equal("done");
      return err;
    };
    const [quick, program, person] = await Promise.all([shown(true, 300), shown(false, 1_500), shown(true, 2_500)]);
    expect([quick, program]).to.deep.equal(["", "… running\n"]);
    expect(person).to.match(/^\r… running, 1 s\r… running, 2 s\r\u001b\[K$/);
  }).timeout(10_000);

  it("strip control characters from answers, and shorten hashes only where a table would not fit", () => {
    expect(oneLine("a\u001b[2Jb\nc")).to.equal("a [2Jb c");
    const hash = `0x${"ab".repeat(32)}`;
    expect(table([{ id: hash, name: "x" }])).to.include(hash);
    expect(table([{ id: hash, name: "x" }], 40)).to.include("0xababab…ababab");
    expect(table([{ id: hash, api_key_hash: hash, name: "x" }]).split("\n")[0]).to.match(/^ID +NAME$/);
    const long = "x".repeat(1_000);
    expect(readable({ next: "7", events: [{ cursor: "1", args: { name: long } }] }))
      .to.include(long)
      .and.to.match(/^next  7\n\nevents\nCURSOR  ARGS\n1 /);
    expect(readable({ a: 1, list: ["x", "y"] })).to.equal("a     1\nlist  x,y\n");
    expect(readable([])).to.equal("(none)\n");
  });

  it("show nothing of a hostile service that would control the terminal, and the same JSON to programs", async () => {
    const wild = "\u001b[2J\u009b2J\u202e\u{e0041}";
    const run = { response: wild, logs: wild, has_error: false, usage: { duration_ms: wild, cost_cents: wild } };
    const error = { code: wild, message: wild, stack: wild };
    const problem = { code: wild, detail: wild, request_id: wild, [wild]: wild };
    const answers: [line: string, answer: object, status?: number][] = [
      ["service health", { [wild]: wild, rows: [{ [wild]: wild }] }],
      ["service health", problem, 400],
      [`run ${CID}`, run],
      [`run ${CID}`, { ...run, has_error: true, error }],
    ];
    for (const [line, answer, status = 200] of answers) {
      const service = createServer((_, response) => response.writeHead(status).end(JSON.stringify(answer)));
      await once(service.listen(0, "127.0.0.1"), "listening");
      cli.env["KEYWRIGHT_URL"] = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
      cli.env["KEYWRIGHT_API_KEY"] = `${"A".repeat(43)}=`;
      try {
        for (const asked of [line, `--json ${line}`]) {
          const { out, err } = await cli.run(asked);
          expect(out + err, asked).to.not.match(/[^\P{C}\n]/u);
        }
        const { out, err } = await cli.run(`--json ${line}`);
        expect(JSON.stringify(JSON.parse(out || err))).to.include(JSON.stringify(wild));
      } finally {
        service.close();
      }
    }
  });
});
