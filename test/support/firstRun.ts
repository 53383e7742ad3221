/** Runs the curl commands of docs/first-run.md and of the README unchanged. */
import { expect } from "chai";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(__dirname, "..", "..");

/** From a new account to a signature of the PKP and a refused key, against any service. */
export async function expectFirstRun(baseUrl: string): Promise<void> {
  const { status, output } = await bash(scriptFor(join("docs", "first-run.md"), baseUrl));
  expect(status, output).to.equal(0);
  const signed = /PKP (0x[0-9a-fA-F]{40}) signed: (0x[0-9a-fA-F]{40})/.exec(output);
  expect(signed, output).not.to.equal(null);
  expect(signed?.[1]).to.equal(signed?.[2]);
  expect(output).to.include('"balance_cents":2000');
  expect(output.trimEnd().split("\n").at(-1)).to.include('"code":"unknown_key"');
}

/** The README's shortest way to a signature. */
export async function expectFirstSignature(baseUrl: string): Promise<void> {
  const { status, output } = await bash(scriptFor("README.md", baseUrl));
  expect(status, output).to.equal(0);
  const { response, has_error } = JSON.parse(output.trimEnd().split("\n").at(-1) ?? "") as {
    response: { signature: string };
    has_error: boolean;
  };
  expect([has_error, response.signature]).to.satisfy(
    ([failed, signature]: [boolean, string]) => !failed && /^0x[0-9a-f]{130}$/.test(signature),
    output,
  );
}

function scriptFor(page: string, baseUrl: string): string {
  const text = readFileSync(join(ROOT, page), "utf8");
  const blocks = [...text.matchAll(/```bash\n([\s\S]*?)```/g)].map(([, lines = ""]) => lines);
  return ["set -euo pipefail", ...blocks].join("\necho\n").replace("http://127.0.0.1:8000", baseUrl);
}

async function bash(script: string): Promise<{ status: number | null; output: string }> {
  const child = spawn("bash", ["-s"], { cwd: ROOT, stdio: ["pipe", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  child.stdin.end(script);
  const status = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { status, output };
}
