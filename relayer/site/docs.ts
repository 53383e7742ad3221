/**
 * Serves docs/ as pages under /docs, each rendered when it is first asked for: no request data gets into a page, and no
 * script runs in one.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import MarkdownIt from "markdown-it";

export interface DocsPage {
  readonly contentType: string;
  readonly content: string;
  /** Sent with every page. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface Docs {
  /**
   * A page by its file name, as HTML without extension and as its source with `.md`; for programs `llms.txt`,
   * `llms-full.txt` (all pages) and `SKILL.md`.
   */
  page(name: string): DocsPage | undefined;
}

const STYLE = `
body{font:16px/1.6 system-ui,sans-serif;margin:0 auto;max-width:62rem;padding:1rem 1.5rem 4rem}
body{color:#1b1f24;background:#fff}
nav{display:flex;flex-wrap:wrap;gap:.25rem 1rem;border-bottom:1px solid #d0d7de;padding-bottom:.75rem}
a{color:#0550ae}
a:focus-visible{outline:2px solid}
code,pre{font:14px/1.5 ui-monospace,monospace;background:#f2f4f6;border-radius:4px}
code{padding:.1em .3em}
pre{padding:.75rem 1rem;overflow:auto}
pre code{padding:0}
table{border-collapse:collapse;display:block;overflow:auto}
th,td{border:1px solid #d0d7de;padding:.3rem .6rem;text-align:left;vertical-align:top}
:target{background:#fff8c5}
@media(prefers-color-scheme:dark){
body{color:#e6edf3;background:#0d1117}
a{color:#79c0ff}
code,pre{background:#161b22}
th,td,nav{border-color:#30363d}
:target{background:#3b2e00}
}`;
const STYLE_HASH = createHash("sha256").update(STYLE).digest("base64");
const HEADERS = {
  "Content-Security-Policy":
    `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; ` +
    "form-action 'none'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};

/** Relative to the built program, or to the sources. */
const FOLDERS = [join(__dirname, "..", "..", "docs"), join(__dirname, "..", "..", "..", "docs")];

export function openDocs(serviceName: string): Docs {
  const folder = FOLDERS.find((one) => existsSync(join(one, "errors.md")));
  const files = folder === undefined ? [] : readdirSync(folder).filter((file) => file.endsWith(".md"));
  const texts = new Map(
    files.sort().map((file) => [file.slice(0, -".md".length), readFileSync(join(folder ?? "", file), "utf8")]),
  );
  const names = [...texts.keys()];
  const html = (title: string, body: string): DocsPage => page(serviceName, names, title, body);
  const pages = new Map<string, () => DocsPage>([
    ["index", () => html("Documentation", markdown.render(indexOf(texts, "")))],
    ["index.md", () => plain(indexOf(texts, "/docs/"), "text/markdown")],
  ]);
  for (const [name, text] of texts) {
    pages.set(name, () => html(titleOf(text), markdown.render(text)));
    pages.set(`${name}.md`, () => plain(text, "text/markdown"));
  }
  const read = (file: string): string | undefined => (existsSync(file) ? readFileSync(file, "utf8") : undefined);
  const llms = read(join(folder ?? "", "llms.txt"));
  if (llms !== undefined) {
    pages.set("llms.txt", () => plain(llms, "text/plain"));
    pages.set("llms-full.txt", () => plain([llms, ...texts.values()].join("\n\n"), "text/plain"));
  }
  const skill = read(join(folder ?? "", "..", "SKILL.md"));
  if (skill !== undefined) pages.set("SKILL.md", () => plain(skill, "text/markdown"));
  const rendered = new Map<string, DocsPage>();
  return {
    page: (name) => {
      const shown = rendered.get(name) ?? pages.get(name)?.();
      if (shown !== undefined) rendered.set(name, shown);
      return shown;
    },
  };
}

const plain = (content: string, type: string): DocsPage => ({
  contentType: `${type}; charset=utf-8`,
  content,
  headers: HEADERS,
});

const titleOf = (text: string): string => /^# (.+)$/m.exec(text)?.[1] ?? "";
const indexOf = (texts: ReadonlyMap<string, string>, folder: string): string =>
  ["# Documentation", "", ...[...texts].map(([name, text]) => `- [${titleOf(text)}](${folder}${name}.md)`), ""].join(
    "\n",
  );

const escape = (text: string): string => text.replace(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);

function page(serviceName: string, names: readonly string[], title: string, body: string): DocsPage {
  const links = names.map((name) => `<a href="/docs/${name}">${name}</a>`).join("\n");
  const content = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)} · ${escape(serviceName)}</title>
<style>${STYLE}</style>
</head>
<body>
<nav aria-label="Pages">${links}</nav>
<main>
${body}</main>
</body>
</html>
`;
  return { contentType: "text/html; charset=utf-8", content, headers: HEADERS };
}

const markdown = new MarkdownIt({ html: false, linkify: false });

/** Headings get anchors: `## unknown_group` is `#unknown_group`. */
markdown.core.ruler.push("anchors", ({ tokens }) => {
  tokens.forEach((token, i) => {
    if (token.type === "heading_open") token.attrSet("id", anchorOf(tokens[i + 1]?.content ?? ""));
  });
});
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\w -]/g, "")
    .trim()
    .replace(/ /g, "-");

/** HTML comments are for editors of the pages. */
markdown.core.ruler.before("normalize", "comments", (state) => {
  state.src = state.src.replace(/^<!--.*-->$/gm, "");
});

/**
 * Links to pages of this folder are rewritten to /docs; other relative links point to the index, since those files are
 * not served.
 */
markdown.core.ruler.push("links", ({ tokens }) => {
  for (const inline of tokens) {
    for (const token of inline.children ?? []) {
      const href = token.attrGet("href");
      if (href !== null) token.attrSet("href", hrefOf(String(href)));
    }
  }
});
function hrefOf(href: string): string {
  const [, name, anchor = ""] = /^([a-z-]+)\.md(#.*)?$/.exec(href) ?? [];
  if (name !== undefined) return `/docs/${name}${anchor}`;
  return /^(#|https?:)/.test(href) ? href : "/docs/";
}
