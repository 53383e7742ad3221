/**
 * The application configuration: every image of its compose file must be named by digest, or the compose hash does not
 * fix the code.
 */
import { parseDocument } from "yaml";
import { z } from "zod";
import { jsonOf, Malformed } from "./types";

export const MAX_COMPOSE_CHARS = 1024 * 1024;
const PINNED = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,255}@sha256:[0-9a-f]{64}$/;
/** Keys that pull in content outside the compose file. */
const FOREIGN = ["build", "extends", "provider"];

const appComposeSchema = z.looseObject({ runner: z.string().optional(), docker_compose_file: z.string() });
const composeSchema = z.looseObject({
  services: z.record(z.string(), z.record(z.string(), z.unknown())),
  include: z.undefined().optional(),
});

/** The images, by service. Throws Malformed naming the service whose image is not pinned. */
export function pinnedImages(appCompose: string): Map<string, string> {
  if (appCompose.length > MAX_COMPOSE_CHARS)
    throw new Malformed(`app_compose is longer than ${MAX_COMPOSE_CHARS} characters`);
  const app = shaped(appComposeSchema, jsonOf(appCompose, "app_compose"), "app_compose has no docker_compose_file");
  if (app.runner !== undefined && app.runner !== "docker-compose")
    throw new Malformed("app_compose is not run by docker-compose, so no image fixes its code");
  const { services } = shaped(
    composeSchema,
    yamlOf(app.docker_compose_file),
    "docker_compose_file has no services of its own (or includes another file)",
  );
  const images = new Map(Object.entries(services).map(([name, service]) => [name, imageOf(name, service)]));
  if (images.size === 0) throw new Malformed("docker_compose_file has no services");
  return images;
}

function imageOf(name: string, service: Record<string, unknown>): string {
  const foreign = FOREIGN.find((key) => key in service);
  if (foreign !== undefined)
    throw new Malformed(`the service "${name}" uses "${foreign}": its code is not fixed by a digest`);
  const { image } = service;
  if (typeof image !== "string" || !PINNED.test(image))
    throw new Malformed(`the service "${name}" does not name its image by digest (…@sha256:…)`);
  return image;
}

function shaped<T>(schema: z.ZodType<T>, value: unknown, otherwise: string): T {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new Malformed(otherwise);
  return parsed.data;
}

/** Parses with merge keys, as compose does; the library's own limit stops alias bombs. */
function yamlOf(text: string): unknown {
  try {
    const document = parseDocument(text, { merge: true, logLevel: "silent" });
    if (document.errors.length > 0) throw new Malformed("docker_compose_file is not YAML");
    return document.toJS({ maxAliasCount: 100 });
  } catch {
    throw new Malformed("docker_compose_file is not YAML");
  }
}
