/** Snippets for the same run from other clients. The key is never inserted: it stays a variable. */
import { VERSION } from "../../../protocol/version";

const indented = (text: string): string => text.replaceAll("\n", "\n  ");

export function curlOf(origin: string, code: string, params: unknown): string {
  const body = JSON.stringify({ code, js_params: params }, null, 2).replaceAll("'", `'\\''`);
  return [
    `curl -sS ${origin}/core/v1/run_action \\`,
    `  -H "X-Api-Key: $KEY" -H "Content-Type: application/json" \\`,
    `  -d '${body}'`,
  ].join("\n");
}

export function sdkOf(origin: string, code: string, params: unknown): string {
  const text = code.replaceAll("\\", "\\\\").replaceAll("`", "\\`").replaceAll("${", "\\${");
  return [
    `// npm install ${origin}/packages/keywright-${VERSION}.tgz`,
    `import { createClient } from "keywright";`,
    ``,
    `const code = \`${text}\`;`,
    `const client = createClient({ baseUrl: ${JSON.stringify(origin)}, apiKey: process.env.KEY });`,
    `const run = await client.runAction({`,
    `  code,`,
    `  js_params: ${indented(JSON.stringify(params, null, 2))},`,
    `});`,
    `if (run.has_error) throw new Error(run.error.message);`,
    `console.log(run.response);`,
  ].join("\n");
}
