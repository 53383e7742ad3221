/** Finds unpinned images of a compose file, whose content the registry may change at any time. */
import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";
import { usageError, type Command } from "./command";

const composeSchema = z.looseObject({
  services: z.record(z.string(), z.looseObject({ image: z.string().optional(), build: z.unknown().optional() })),
});
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
  help: "check that a rendered compose file names every image by digest",
  run: async ({ args, print }) => {
    const [file] = args;
    if (file === undefined)
      return usageError("This command takes a compose file, as `docker compose config` renders it.");
    const problems = unpinnedImages(readFileSync(file, "utf8"));
    if (problems.length > 0) throw new Error(problems.join("\n"));
    print("Every image is pinned by digest.");
  },
};
