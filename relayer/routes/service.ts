/** The service itself: health, readiness, its description and the viewer of it. Source: specification §9; wire "Origin routes". */
import { KeywrightError } from "../../protocol/errors";
import type { HandlersOf } from "../middleware/call";
import type { Viewer } from "../viewer";

export interface ServiceDeps {
  /** One sentence for each thing that is missing. */
  readonly problems: () => Promise<readonly string[]>;
  readonly description: { readonly openapi: string };
  readonly viewer: Viewer;
}

type ServiceRoute = "health" | "ready" | "home" | "openapi" | "viewer" | "viewerFile";

export function serviceRoutes({ problems, description, viewer }: ServiceDeps): HandlersOf<ServiceRoute> {
  const page = async () => ({ contentType: "text/html; charset=utf-8", content: viewer.page });
  return {
    health: async () => ({ status: "ok" }),

    ready: async () => {
      const found = await problems();
      if (found.length > 0) throw new KeywrightError("not_ready", found.join(" "), { problems: found });
      return { ready: true };
    },

    openapi: async () => description,
    home: page,
    viewer: page,

    viewerFile: async ({ params, setHeader }) => {
      const file = viewer.file(params.file);
      if (file === undefined) throw new KeywrightError("route_not_found", "The viewer has no such file.");
      setHeader("Cache-Control", "public, max-age=3600");
      return file;
    },
  };
}
