/**
 * `npm run image`: builds relayer's and executor's images as OCI layouts in dist/image, from the committed files, the
 * two lockfiles and nothing else. Prints their digests; `--check` compares them with image/digests.json and ends with 1
 * when they differ.
 */
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { buildImages, IMAGE_NAMES, readDigests, writeDigests } from "./image/build";
import { newestPackages } from "./image/debian";
import { MIB } from "../protocol/limits";

const ROOT = resolve(__dirname, "..", "..");

interface Options {
  output: string;
  source: string;
  installed?: true;
  check?: true;
  write?: true;
  updatePackages?: true;
}

async function main(options: Options): Promise<void> {
  if (options.updatePackages) return updatePackages();
  const { source, output } = options;
  const installed = options.installed ? { installed: join(ROOT, "node_modules") } : {};
  const images = await buildImages({ source: resolve(source), output: resolve(output), ...installed });
  for (const name of IMAGE_NAMES)
    console.log(
      `${name.padEnd(9)} ${images[name].digest}  ${(images[name].bytes / MIB).toFixed(1)} MiB  ${join(output, name)}`,
    );
  if (options.write) await writeDigests(ROOT, images);
  if (options.check) await check(await readDigests(resolve(source)), images);
}

async function check(
  committed: Awaited<ReturnType<typeof readDigests>>,
  images: Awaited<ReturnType<typeof buildImages>>,
): Promise<void> {
  const differing = IMAGE_NAMES.filter((name) => committed?.[name].digest !== images[name].digest);
  if (differing.length === 0) return console.log("as committed in image/digests.json");
  console.error(
    `image/digests.json does not name these digests (${differing.join(", ")}). If the change is intended: npm run ` +
      "image -- --write, and commit it.",
  );
  process.exitCode = 1;
}

async function updatePackages(): Promise<void> {
  const packages = await newestPackages();
  await writeFile(join(ROOT, "image", "packages.lock"), `${JSON.stringify(packages, null, 2)}\n`);
  for (const { name, version } of packages) console.log(`${name} ${version}`);
}

const program = new Command("npm run image --")
  .description("Builds the images of relayer and executor, bit for bit the same everywhere.")
  .option("--output <folder>", "where the OCI layouts go", join("dist", "image"))
  .option("--source <folder>", "the repository to build", ".")
  .option(
    "--installed",
    "take the packages, and what was built of the same sources, from this checkout instead of making them anew",
  )
  .option("--check", "compare with image/digests.json")
  .option("--write", "write image/digests.json")
  .option(
    "--update-packages",
    "lock the newest versions of Debian's packages (run apt-get update before) and build nothing",
  )
  .action(main);

program.parseAsync().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
});
