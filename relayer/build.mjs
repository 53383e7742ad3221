// The checkout page: its script as one bundle, beside the two files it is put together with.
import { build } from "esbuild";
import { cpSync } from "node:fs";
import { join } from "node:path";

export default async function bundleBillingPage({ root, outdir }) {
  const [from, to] = [join(root, "relayer", "billing-page"), join(outdir, "billing-page")];
  await build({
    absWorkingDir: root,
    entryPoints: [join(from, "browser", "checkout.ts")],
    outfile: join(to, "checkout.js"),
    bundle: true,
    platform: "browser",
    target: "es2022",
    format: "iife",
    logLevel: "warning",
  });
  for (const file of ["page.html", "page.css"]) cpSync(join(from, file), join(to, file));
}
