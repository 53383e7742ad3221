/** Routes of the service itself: health, readiness, dashboard, API description and its viewer, documentation. */
import { KeywrightError } from "../../protocol/errors";
import type { serviceRoutes as routes } from "../../protocol/http/service";
import type { Dashboard } from "../site/dashboard";
import type { Docs, DocsPage } from "../site/docs";
import type { Call, HandlersOf } from "../middleware/call";
import type { DescriptionFile } from "../site/openapi";
import type { Packages } from "../site/packages";
import type { Viewer } from "../site/viewer";
import type { TransparencyRoute } from "./transparency";

export interface ServiceDeps {
  /** One sentence per readiness problem. */
  readonly problems: () => Promise<readonly string[]>;
  readonly description: DescriptionFile;
  readonly viewer: Viewer;
  readonly docs: Docs;
  readonly dashboard: Dashboard;
  readonly packages: Packages;
}

const HTML = "text/html; charset=utf-8";
/** The dashboard routes by fragment: the server knows one page only. */
const CREDIT_SCREEN = "/#/credit";

export function serviceRoutes({
  problems,
  description,
  viewer,
  docs,
  dashboard,
  packages,
}: ServiceDeps): HandlersOf<Exclude<keyof typeof routes, TransparencyRoute>> {
  return {
    health: async () => ({ status: "ok" }),

    ready: async () => {
      const found = await problems();
      if (found.length > 0) throw new KeywrightError("not_ready", found.join(" "), { problems: found });
      return { ready: true };
    },

    openapi: async ({ header, setHeader }) => {
      const { content, etag } = description;
      setHeader("Cache-Control", "public, no-cache");
      setHeader("ETag", etag);
      const isKnown = header("If-None-Match")?.includes(etag) === true;
      return { contentType: "application/json", content: isKnown ? "" : content, status: isKnown ? 304 : 200 };
    },
    viewer: async ({ setHeader }) => {
      // It takes keys; the page's own policy cannot say who may frame it.
      setHeader("X-Frame-Options", "DENY");
      return { contentType: HTML, content: viewer.page };
    },

    home: async ({ setHeader }) => {
      const { html, headers } = dashboard.page();
      for (const [name, value] of Object.entries(headers)) setHeader(name, value);
      return { contentType: HTML, content: html };
    },

    billingPage: async ({ setHeader }) => {
      setHeader("Location", CREDIT_SCREEN);
      return { contentType: HTML, content: "", status: 302 };
    },

    dashboardFile: async ({ params, acceptsEncoding, setHeader }) => {
      const file = dashboard.file(params.file, acceptsEncoding);
      if (file === undefined) throw new KeywrightError("route_not_found", "The dashboard has no such file.");
      setHeader("Cache-Control", "public, max-age=31536000, immutable");
      setHeader("Vary", "Accept-Encoding");
      if (file.encoding !== undefined) setHeader("Content-Encoding", file.encoding);
      return file;
    },

    docs: async (call) => docsPage(docs, negotiated("index", call), call.setHeader),
    docsPage: async (call) => docsPage(docs, negotiated(call.params.page, call), call.setHeader),
    llms: async ({ setHeader }) => docsPage(docs, "llms.txt", setHeader),
    llmsFull: async ({ setHeader }) => docsPage(docs, "llms-full.txt", setHeader),
    skill: async ({ setHeader }) => docsPage(docs, "SKILL.md", setHeader),

    packageFile: async ({ params, setHeader }) => {
      const content = packages.file(params.file);
      if (content === undefined) throw new KeywrightError("route_not_found", "The service has no such package.");
      // npm writes the hash of what it could keep into lockfiles.
      setHeader("Cache-Control", "public, no-cache");
      return { contentType: "application/gzip", content };
    },

    viewerFile: async ({ params, setHeader }) => {
      const file = viewer.file(params.file);
      if (file === undefined) throw new KeywrightError("route_not_found", "The viewer has no such file.");
      setHeader("Cache-Control", "public, max-age=3600");
      return file;
    },
  };
}

/** The page's source for programs that ask for it. */
function negotiated(page: string, { header, setHeader }: Pick<Call<"docs">, "header" | "setHeader">): string {
  setHeader("Vary", "Accept");
  return /\btext\/markdown\b/.test(header("Accept") ?? "") && !page.endsWith(".md") ? `${page}.md` : page;
}

function docsPage(
  docs: Docs,
  name: string,
  setHeader: (name: string, value: string) => void,
): Pick<DocsPage, "contentType" | "content"> {
  const page = docs.page(name);
  if (page === undefined) throw new KeywrightError("route_not_found", "The documentation has no such page.");
  for (const [header, value] of Object.entries(page.headers)) setHeader(header, value);
  return { contentType: page.contentType, content: page.content };
}
