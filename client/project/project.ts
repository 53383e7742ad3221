/** A project of actions on disk: its folder, its configuration and its own tools. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import { eventSchema, hookSchema, scheduleSchema } from "../../protocol/trigger";
import type { ProjectConfig } from "../config";
import { WrongUse } from "../errors";
import { isThisMachine } from "../transport";
import { hookSecretName } from "./keys";
import type * as Esbuild from "esbuild";

export const CONFIG_FILE = "keywright.config.ts";
const NAME = /^[a-z0-9][a-z0-9-]*$/;
const name = z.string().regex(NAME, "names are lower-case letters, digits and dashes");

const schema = z.strictObject({
  actions: z.record(name, z.strictObject({ file: z.string(), description: z.string().optional() })),
  pkps: z.record(name, z.strictObject({ description: z.string().optional() })).default({}),
  groups: z
    .record(
      name,
      z.strictObject({
        description: z.string().optional(),
        actions: z.array(z.string()).default([]),
        pkps: z.array(z.string()).default([]),
      }),
    )
    .default({}),
  keys: z
    .record(
      name,
      z.strictObject({
        description: z.string().optional(),
        execute: z.array(name).default([]),
        balance: z.int().nonnegative().optional(),
        expiration: z.int().nonnegative().optional(),
      }),
    )
    .default({}),
  triggers: z
    .record(
      name,
      z.strictObject({
        /** An action of the project, or a CID. */
        action: z.string(),
        params: z.record(z.string(), z.unknown()).default({}),
        schedule: scheduleSchema.optional(),
        event: eventSchema.optional(),
        hook: hookSchema.optional(),
        /** An empty list would be taken for all groups, or make a trigger that can run nothing. */
        execute: z.array(name).min(1, "names a group; leave it out for all").optional(),
        balance: z.int().nonnegative().optional(),
        expiration: z.int().nonnegative().optional(),
      }),
    )
    .default({}),
  outDir: z.string().default("build"),
  moduleOrigin: z
    .url()
    .refine(isSafe, "what is fetched over http, everybody on the way can change: use https")
    .default("https://cdn.jsdelivr.net/npm/"),
});

function isSafe(url: string): boolean {
  if (!URL.canParse(url)) return true; // Refused for that.
  const { protocol, hostname } = new URL(url);
  return protocol === "https:" || (protocol === "http:" && isThisMachine(hostname));
}

export interface Project {
  readonly folder: string;
  readonly config: z.output<typeof schema>;
  readonly esbuild: typeof Esbuild;
}

/** @throws WrongUse when there is no configuration, when it is invalid, or when the project lacks esbuild. */
export async function openProject(folder: string): Promise<Project> {
  const file = join(folder, CONFIG_FILE);
  if (!existsSync(file)) throw new WrongUse(`There is no ${CONFIG_FILE} here: keywright init creates a project.`);
  const esbuild = projectTool<typeof Esbuild>(folder, "esbuild");
  const parsed = schema.safeParse(await loadConfig(esbuild, folder, file));
  if (parsed.success) return { folder, config: checked(parsed.data), esbuild };
  const [issue] = parsed.error.issues;
  throw new WrongUse(`${CONFIG_FILE}: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? "is not a configuration"}`);
}

/** A package from the project's own dependencies. */
export function projectTool<T>(folder: string, tool: string): T {
  try {
    return createRequire(join(folder, "package.json"))(tool) as T;
  } catch {
    throw new WrongUse(`This needs ${tool}: npm install --save-dev ${tool}`);
  }
}

/** Bundles the configuration first, since it is TypeScript and may import; packages stay external. */
async function loadConfig(esbuild: typeof Esbuild, folder: string, file: string): Promise<unknown> {
  const temporary = mkdtempSync(join(folder, ".keywright-"));
  try {
    const outfile = join(temporary, "config.mjs");
    const { outputFiles } = await esbuild.build({
      absWorkingDir: folder,
      entryPoints: [file],
      bundle: true,
      platform: "node",
      format: "esm",
      packages: "external",
      write: false,
      logLevel: "silent",
    });
    writeFileSync(outfile, outputFiles[0]?.contents ?? "");
    return ((await import(pathToFileURL(outfile).href)) as { default?: ProjectConfig }).default;
  } catch (error) {
    throw new WrongUse(
      `${CONFIG_FILE} cannot be read: ${error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error)}`,
    );
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/** Checks that every referenced name is defined. */
function checked(config: Project["config"]): Project["config"] {
  for (const [group, { actions, pkps }] of Object.entries(config.groups)) {
    for (const action of actions)
      if (NAME.test(action) && !Object.hasOwn(config.actions, action))
        throw new WrongUse(`${CONFIG_FILE}: the group ${group} lists the action ${action}, which is not there.`);
    for (const pkp of pkps)
      if (NAME.test(pkp) && !pkp.startsWith("0x") && !Object.hasOwn(config.pkps, pkp))
        throw new WrongUse(`${CONFIG_FILE}: the group ${group} lists the PKP ${pkp}, which is not there.`);
  }
  checkTriggers(config);
  for (const [key, { execute }] of Object.entries(config.keys)) {
    if (Object.keys(config.triggers).some((trigger) => key === hookSecretName(config.triggers, trigger)))
      throw new WrongUse(
        `${CONFIG_FILE}: the key ${key} has the name under which a hook's secret is stored: rename it.`,
      );
    for (const group of execute)
      if (!Object.hasOwn(config.groups, group))
        throw new WrongUse(`${CONFIG_FILE}: the key ${key} names the group ${group}, which is not there.`);
  }
  return config;
}

export function actionFile({ folder, config }: Project, action: string): string {
  const found = Object.hasOwn(config.actions, action) ? config.actions[action] : undefined;
  if (found === undefined)
    throw new WrongUse(
      `There is no action ${action} in ${CONFIG_FILE}; there are: ${Object.keys(config.actions).join(", ")}.`,
    );
  const file = resolve(folder, found.file);
  if (!existsSync(file)) throw new WrongUse(`${found.file}, the file of the action ${action}, is not there.`);
  return file;
}

function checkTriggers(config: Project["config"]): void {
  for (const [trigger, { action, schedule, event, hook, execute = [] }] of Object.entries(config.triggers)) {
    if (NAME.test(action) && !Object.hasOwn(config.actions, action))
      throw new WrongUse(`${CONFIG_FILE}: the trigger ${trigger} runs the action ${action}, which is not there.`);
    if ([schedule, event, hook].filter((one) => one !== undefined).length !== 1)
      throw new WrongUse(`${CONFIG_FILE}: the trigger ${trigger} needs exactly one of schedule, event and hook.`);
    for (const group of execute)
      if (!Object.hasOwn(config.groups, group))
        throw new WrongUse(`${CONFIG_FILE}: the trigger ${trigger} names the group ${group}, which is not there.`);
  }
}
