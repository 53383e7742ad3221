/** Actions as code: `init`, `build`, `dev`, `test`, `deploy`. */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import { createClient } from "../api";
import { buildAction, buildAll, options as buildOptions, readLock, writeLock } from "../project/build";
import { planDeployment, type Holder, type Plan } from "../project/deploy";
import { isKeysSecret, nameOfReplaced } from "../project/keys";
import { openProject, type Project } from "../project/project";
import type { Keep } from "../project/step";
import { startSandbox, type LocalOutcome, type LocalSandbox } from "../project/sandbox";
import { newProject } from "../project/templates";
import { originOf, serviceOf, writePrivate } from "./config";
import type { Context } from "./context";
import { EXIT, Ended } from "./failure";
import { ClientError, WrongUse, withFacts } from "../errors";
import { paramsOf } from "./run";
import { jsonText, lines, oneLine } from "./text";
import { defined } from "../../protocol/defined";
import { parseJson } from "../../protocol/json";
import { VERSION } from "../../protocol/version";

export const SECRETS_FILE = "keywright.secrets.json";

interface DevOptions {
  readonly params?: string;
  readonly paramsFile?: string;
  readonly seed?: string;
  readonly allowHost?: string[];
  readonly once?: boolean;
}

export function addProject(program: Command, context: Context): void {
  program
    .command("init")
    .description("make a project: keywright.config.ts, an action in TypeScript with a test, a CI file")
    .argument("[folder]", "where", ".")
    .action((folder: string) => init(context, folder));
  program
    .command("build")
    .description("bundle each action into one file, and write down the hashes of modules imported by address")
    .action(async () => {
      const built = await buildAll(await projectHere(context));
      context.print(built.map(({ action, file, cid, bytes }) => ({ action, cid, file, bytes })));
    });
  program
    .command("dev")
    .description("run an action in the real sandbox on every save, with a throw-away PKP")
    .argument("<action>", "its name in keywright.config.ts")
    .option("--params <json>", "what main receives, a JSON object; pkpId is added")
    .option("--params-file <file>", "the same, from a file")
    .option("--seed <text>", "the same text gives the same PKP again")
    .option("--allow-host <host...>", "non-public hosts, or host:port, that the action may fetch from")
    .option("--once", "run once and end")
    .action((action: string, options: DevOptions) => dev(context, action, options));
  program
    .command("test")
    .description("run test/**/*.test.ts with mocha")
    .argument("[mocha options...]")
    .allowUnknownOption()
    .action((args: string[]) => test(context, args));
  program
    .command("deploy")
    .description("show what keywright.config.ts adds to or changes in the account, and apply it")
    .option("--yes", "apply it without asking")
    .option("--dry-run", "show it only")
    .action((options: { yes?: boolean; dryRun?: boolean }) => deploy(context, options));
}

const projectHere = (context: Context): Promise<Project> => openProject(context.io.cwd);

function init({ io, options, print }: Context, where: string): void {
  const folder = resolve(io.cwd, where);
  const { url, insecure } = serviceOf(io.env, options());
  // Refuses http to other machines: whoever is on the way could change the program that the project installs.
  createClient({ baseUrl: url, insecure });
  const files = newProject(
    basename(folder)
      .toLowerCase()
      .replace(/[^a-z0-9-]+/g, "-"),
    { ...VERSIONS, keywright: `${originOf(url)}/packages/keywright-${VERSION}.tgz` },
  );
  const taken = Object.keys(files).filter((file) => existsSync(join(folder, file)));
  if (taken.length > 0) throw new WrongUse(`${folder} has ${taken.join(", ")} already; nothing was written.`);
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
  print({ folder, files: Object.keys(files), next: "npm install, then npx --no -- keywright dev sign" });
}

/** Versions of a new project's tools: those this program is tested with. The program itself comes from the service. */
const VERSIONS = {
  ethers: "^6.17.0",
  isolatedVm: "^7.0.1",
  esbuild: "^0.28.2",
  typescript: "^5.9.3",
  mocha: "^10.8.2",
};

async function dev(context: Context, action: string, given: DevOptions): Promise<void> {
  const project = await projectHere(context);
  const params = paramsOf(context, given);
  const sandbox = await startSandbox(project.folder, {
    ...defined({ seed: given.seed, allowHosts: given.allowHost }),
  });
  try {
    if (given.once !== true) return await watch(context, project, action, params, sandbox);
    const lock = readLock(project);
    const { code } = await buildAction(project, action, lock);
    writeLock(project, lock);
    const outcome = await sandbox.run(code, params);
    show(context, outcome, sandbox);
    if (outcome.error !== undefined) throw new Ended(EXIT.actionFailed);
  } finally {
    await sandbox.close();
  }
}

/** Rebuilds on changes and runs each successful build, one at a time, until the program is stopped. */
async function watch(
  context: Context,
  project: Project,
  action: string,
  params: Record<string, unknown>,
  sandbox: LocalSandbox,
): Promise<void> {
  const { io } = context;
  const lock = readLock(project);
  let running: Promise<void> = Promise.resolve();
  const plugin = {
    name: "run",
    setup: ({
      onEnd,
    }: {
      onEnd: (end: (result: { errors: { text: string }[]; outputFiles?: { text: string }[] }) => void) => void;
    }) =>
      onEnd(({ errors, outputFiles }) => {
        for (const { text } of errors) io.err(`error: ${oneLine(text)}\n`);
        const code = outputFiles?.[0]?.text;
        if (errors.length > 0 || code === undefined) return;
        writeLock(project, lock);
        running = running
          .then(async () => show(context, await sandbox.run(code, params), sandbox))
          .catch((error: unknown) => io.err(`error: ${String(error)}\n`));
      }),
  };
  const base = buildOptions(project, action, lock);
  const building = await project.esbuild.context({ ...base, plugins: [...(base.plugins ?? []), plugin] });
  await building.watch();
  await new Promise<void>((done) => ["SIGINT", "SIGTERM"].forEach((signal) => process.once(signal, () => done())));
  await building.dispose();
  await running;
}

function show(
  { io, options }: Context,
  { response, logs, error, durationMs, cid, recorded }: LocalOutcome,
  { pkpId, level }: LocalSandbox,
): void {
  if (options().json === true) {
    const value = JSON.parse(response) as unknown;
    const shown = { response: value, logs, error, recorded, cid, pkp_id: pkpId, duration_ms: durationMs };
    io.out(`${jsonText(shown)}\n`);
    return;
  }
  io.out(
    error === undefined
      ? `✓ ${jsonText(JSON.parse(response), 2)}\n`
      : `✗ ${error.code}: ${oneLine(error.message, 2_000)}\n${lines(error.stack ?? "")}\n`,
  );
  if (logs !== "") io.out(lines(logs.endsWith("\n") ? logs : `${logs}\n`));
  for (const one of recorded) {
    const what =
      one.kind === "op" ? `${one.name} ${JSON.stringify(one.args)}` : `${one.method} ${one.url} ${one.status ?? ""}`;
    io.out(`  ${one.kind.padEnd(5)} ${oneLine(what)}${one.error === undefined ? "" : ` — ${oneLine(one.error)}`}\n`);
  }
  io.out(`  ${cid}, PKP ${pkpId} (throw-away), ${durationMs.toFixed(1)} ms\n`);
  if (level.level !== "full") io.out(`  this machine's sandbox is not fully isolated: ${level.missing.join("; ")}\n`);
}

/**
 * Bundles each TypeScript test with the project's own esbuild (packages stay external) and runs it with the project's
 * own mocha.
 */
async function test(context: Context, args: readonly string[]): Promise<void> {
  const { folder, esbuild } = await projectHere(context);
  const entryPoints = testFiles(folder);
  if (entryPoints.length === 0) throw new WrongUse("There are no test/**/*.test.ts.");
  const outdir = join(folder, ".keywright-test");
  try {
    await esbuild
      .build({
        absWorkingDir: folder,
        entryPoints,
        bundle: true,
        packages: "external",
        platform: "node",
        format: "esm",
        outdir,
        outExtension: { ".js": ".mjs" },
        sourcemap: "inline",
        logLevel: "silent",
      })
      .catch((error: unknown) => Promise.reject(new WrongUse(error instanceof Error ? error.message : String(error))));
    // A test, or a hook that was late, may leave a sandbox open: without `--exit` mocha would wait for it forever.
    const code = await mocha(context, folder, [`${outdir}/**/*.mjs`, "--timeout", "60000", "--exit", ...args]);
    if (code !== 0) throw new Ended(EXIT.refused);
  } finally {
    rmSync(outdir, { recursive: true, force: true });
  }
}

function testFiles(folder: string): string[] {
  const tests = join(folder, "test");
  if (!existsSync(tests)) return [];
  return readdirSync(tests, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.test\.[cm]?[jt]s$/.test(file))
    .map((file) => join(tests, file));
}

function mocha({ io }: Context, cwd: string, args: readonly string[]): Promise<number> {
  let program: string;
  try {
    program = createRequire(join(cwd, "package.json")).resolve("mocha/bin/mocha.js");
  } catch {
    throw new WrongUse("This needs mocha: npm install --save-dev mocha");
  }
  return new Promise((done) => {
    const child = spawn(process.execPath, ["--enable-source-maps", program, ...args], {
      cwd,
      stdio: ["ignore", "pipe", "pipe"],
    });
    child.stdout.on("data", (chunk: Buffer) => io.out(chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => io.err(chunk.toString()));
    child.once("close", (code) => done(code ?? 1));
  });
}

async function deploy(context: Context, { yes, dryRun }: { yes?: boolean; dryRun?: boolean }): Promise<void> {
  const project = await projectHere(context);
  // Of a file that cannot be read, a new key's secret would be lost after the key was made.
  readSecrets(project.folder);
  const built = await buildAll(project);
  await context.connected(async (connection) => {
    const plan = await context.waiting("planning", planDeployment(connection, project, built));
    const texts = plan.steps.map(({ mark, text }) => `${mark} ${text}`);
    if (context.options().json !== true)
      context.io.out(texts.length === 0 ? "Nothing to do.\n" : `${texts.join("\n")}\n`);
    const agreed =
      plan.steps.length > 0 &&
      dryRun !== true &&
      (yes === true || (await context.io.confirm(`Make ${plan.steps.length} changes?`)));
    if (plan.steps.length > 0 && dryRun !== true && !agreed)
      throw new WrongUse("Nothing was done: pass --yes, or answer y.");
    if (agreed && (await context.waiting("deploying", carryOut(context, project, plan))))
      context.io.err(`New secrets are in ${SECRETS_FILE}: they are shown nowhere else.\n`);
    const lost = lostSecrets(project, plan);
    for (const { sentence } of lost) context.io.err(`${sentence}\n`);
    const { pkps, groups } = plan.created;
    if (context.options().json === true)
      context.print({
        done: agreed,
        steps: texts,
        pkps: Object.fromEntries(pkps),
        groups: Object.fromEntries(groups),
        cids: Object.fromEntries(built.map((one) => [one.action, one.cid])),
        secrets_not_here: Object.fromEntries(lost.map(({ name, id }) => [name, id])),
      });
  });
}

interface Lost extends Holder {
  readonly sentence: string;
}

/** Keys and hooks of the account that the project names and whose secrets are not in its file under their names. */
function lostSecrets({ folder }: Project, { holders }: Plan): Lost[] {
  const kept = readSecrets(folder);
  // Of a hook's secret nothing tells whose it is; a key's may be that of another account's key of this name.
  const isSecretOf = ({ name, isKey, id }: Holder, at: string): boolean =>
    Object.hasOwn(kept, at) && (isKey ? isKeysSecret(kept[at], id) : at === name);
  return holders
    .filter((holder) => !isSecretOf(holder, holder.name))
    .map((holder) => {
      const { name, id, what, end } = holder;
      const elsewhere = Object.keys(kept).find((at) => isSecretOf(holder, at));
      const sentence =
        elsewhere === undefined
          ? `${what} exists and its secret is not in ${SECRETS_FILE}. If it is lost: keywright ${end}, and deploy ` +
            "again, which creates another."
          : `The secret of the key ${name} ${id} is in ${SECRETS_FILE} as "${elsewhere}": another key's is there as ` +
            `${name}.`;
      return { ...holder, sentence };
    });
}

function readSecrets(folder: string): Record<string, string> {
  const file = join(folder, SECRETS_FILE);
  if (!existsSync(file)) return {};
  const secrets = parseJson(readFileSync(file, "utf8"));
  if (typeof secrets !== "object" || secrets === null || Array.isArray(secrets))
    throw new WrongUse(`${SECRETS_FILE} is not the JSON of keys by name: repair it, or move it away.`);
  return secrets as Record<string, string>;
}

/** A secret that was there under the name stays: it may be that of another account's, which is shown nowhere else. */
function keepBeside(io: Context["io"], folder: string, name: string, secret: string): void {
  const kept = readSecrets(folder);
  const before = Object.hasOwn(kept, name) && kept[name] !== secret ? kept[name] : undefined;
  const moved = before === undefined ? {} : { [nameOfReplaced(name, before)]: before };
  writePrivate(join(folder, SECRETS_FILE), { ...kept, ...moved, [name]: secret });
  for (const now of Object.keys(moved))
    io.err(
      `${SECRETS_FILE} had another secret as ${name}, which is now "${now}": remove it if it is of no more use.\n`,
    );
}

/**
 * Runs the steps in sequence; a secret is written to disk as soon as it is made. An error says at which step.
 * @returns whether there were secrets
 */
async function carryOut({ io, print }: Context, { folder }: Project, { steps, created }: Plan): Promise<boolean> {
  let kept = false;
  const keep: Keep = (name, secret) => {
    if (typeof secret !== "string") return;
    try {
      keepBeside(io, folder, name, secret);
    } catch (error) {
      // It exists nowhere else.
      print({ [name]: secret });
      io.err(`Shown after all, since ${SECRETS_FILE} could not be written: store it.\n`);
      throw error;
    }
    kept = true;
  };
  for (const [done, { mark, text, run }] of steps.entries()) {
    await run(created, keep).catch((error: unknown) => {
      if (!(error instanceof ClientError)) throw error;
      const where = { step: `${mark} ${text}`, steps_done: `${done} of ${steps.length}` };
      throw withFacts(error, { ...where, ...(kept ? { secrets_in: SECRETS_FILE } : {}) });
    });
  }
  return kept;
}
