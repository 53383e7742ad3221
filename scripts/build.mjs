// Compiles every TypeScript file of the top-level folders to CommonJS under dist/, one file each, in about a second.
// Types are checked elsewhere (`npm run types`); services, child processes and scripts run from dist/.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { builtInPlace } from "../executor/build.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const folders = ["protocol", "relayer", "executor", "ingress", "client", "scripts", "typechain-types"];

const sources = folders
  .filter((folder) => existsSync(join(root, folder)))
  .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((file) => join(folder, String(file))))
  .filter((file) => file.endsWith(".ts") && !file.endsWith(".d.ts"))
  // Bundled by executor/build.mjs only: a running service starts children from these files during a build.
  .filter((file) => !/^executor\/(sandbox\/(child\.ts$|guest\/)|fetcher\/main\.ts$)/.test(file));

await builtInPlace({
  entryPoints: sources,
  outdir: "dist",
  outbase: ".",
  platform: "node",
  target: "node24",
  format: "cjs",
  sourcemap: "linked",
  logLevel: "warning",
});

// Folders that need more than file-by-file compilation (the sandbox prelude, browser bundles) have their own build.mjs.
const ownBuild = async (folder) => (await import(join(root, folder, "build.mjs"))).default;
for (const folder of folders)
  if (folder !== "scripts" && existsSync(join(root, folder, "build.mjs")))
    await (
      await ownBuild(folder)
    )({ root, outdir: join(root, "dist", folder) });

// The package that the service serves is made of the above.
const { default: packForServing } = await import(join(root, "client", "tarball.mjs"));
const buildDashboard = await ownBuild("dashboard");
await Promise.all([packForServing({ root }), buildDashboard({ root, outdir: join(root, "dist", "dashboard") })]);
