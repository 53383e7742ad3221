/** The same run from other programs. Without a key of the caller's choice, it stays a variable. */
import { VERSION } from "../../../protocol/version";

export interface Snippet {
  readonly origin: string;
  readonly code: string;
  readonly params: unknown;
  /** Written into the text; otherwise the text reads a variable KEY. */
  readonly apiKey?: string | undefined;
}

const indented = (text: string): string => text.replaceAll("\n", "\n  ");
const inShell = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

export function curlOf({ origin, code, params, apiKey: key }: Snippet): string {
  const body = JSON.stringify({ code, js_params: params }, null, 2);
  const header = key === undefined ? `"X-Api-Key: $KEY"` : inShell(`X-Api-Key: ${key}`);
  return [
    `curl -sS ${origin}/core/v1/run_action \\`,
    `  -H ${header} -H "Content-Type: application/json" \\`,
    `  -d ${inShell(body)}`,
  ].join("\n");
}

export function sdkOf({ origin, code, params, apiKey: key }: Snippet): string {
  const text = code.replaceAll("\\", "\\\\").replaceAll("`", "\\`").replaceAll("${", "\\${");
  return [
    `// npm install ${origin}/packages/keywright-${VERSION}.tgz`,
    `import { createClient } from "keywright";`,
    ``,
    `const code = \`${text}\`;`,
    `const apiKey = ${key === undefined ? "process.env.KEY" : JSON.stringify(key)};`,
    `const client = createClient({ baseUrl: ${JSON.stringify(origin)}, apiKey });`,
    `const run = await client.runAction({`,
    `  code,`,
    `  js_params: ${indented(JSON.stringify(params, null, 2))},`,
    `});`,
    `if (run.has_error) throw new Error(run.error.message);`,
    `console.log(run.response);`,
  ].join("\n");
}

/** JSON's text is read as JSON: true, false and null are other words in Python. */
export function pythonOf({ origin, code, params, apiKey: key }: Snippet): string {
  const text = (value: unknown): string => JSON.stringify(JSON.stringify(value));
  return [
    `import json, os, urllib.request`,
    ``,
    `code = json.loads(${text(code)})`,
    `params = json.loads(${text(params)})`,
    `key = ${key === undefined ? 'os.environ["KEY"]' : JSON.stringify(key)}`,
    `request = urllib.request.Request(`,
    `    "${origin}/core/v1/run_action",`,
    `    json.dumps({"code": code, "js_params": params}).encode(),`,
    `    {"X-Api-Key": key, "Content-Type": "application/json"},`,
    `)`,
    `with urllib.request.urlopen(request, timeout=90) as answer:`,
    `    run = json.load(answer)`,
    `if run["has_error"]:`,
    `    raise SystemExit(run["error"]["message"])`,
    `print(run["response"])`,
  ].join("\n");
}
