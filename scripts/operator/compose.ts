/** Finds what in a compose file would make verify fail: images that are not pinned, or run otherwise than here. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { composeFileOf } from "../../client/verify/compose";
import { checkServices } from "../../client/verify/composeServices";
import { IMAGE_NAMES } from "../image/build";
import { usageError, type Command } from "./command";

const composeSchema = z.looseObject({
  services: z.record(z.string(), z.looseObject({ image: z.string().optional(), build: z.unknown().optional() })),
});
const ROOT = join(__dirname, "..", "..", ...(__filename.endsWith(".ts") ? [] : [".."]));
const PINNED = /@sha256:[0-9a-f]{64}$/;

/** One sentence for each service whose image is not named by digest. */
export function unpinnedImages(composeText: string): readonly string[] {
  const { services } = composeSchema.parse(parse(composeText, { merge: true }));
  return Object.entries(services)
    .filter(([, { image, build }]) => build !== undefined || image === undefined || !PINNED.test(image))
    .map(([name, { image }]) => `${name}: ${image ?? "built in place"} is not pinned by @sha256:<64 hex digits>`);
}

export const checkCompose: Command = {
  args: "<file>",
  help: "check that a rendered compose file names every image by digest and runs ours as compose.yaml",
  run: async ({ args, print }) => {
    const [file] = args;
    if (file === undefined)
      return usageError("This command takes a compose file, as `docker compose config` renders it.");
    const text = readFileSync(file, "utf8");
    const problems = unpinnedImages(text);
    if (problems.length > 0) throw new Error(problems.join("\n"));
    const application = { compose: composeFileOf(text), allowedEnvs: [] };
    checkServices(application, readFileSync(join(ROOT, "compose.yaml"), "utf8"), IMAGE_NAMES);
    print("Every image is pinned by digest, and relayer, executor and ingress run as compose.yaml has it.");
  },
};
