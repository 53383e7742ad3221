/** The interactive viewer of the OpenAPI document: swagger-ui's files, self-hosted. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { API_PREFIX } from "../../protocol/http";

export interface ViewerFile {
  readonly contentType: string;
  readonly content: Buffer | string;
}

export interface Viewer {
  readonly page: string;
  file(name: string): ViewerFile | undefined;
}

const FILES: Readonly<Record<string, string>> = {
  "swagger-ui.css": "text/css; charset=utf-8",
  "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
  "favicon-32x32.png": "image/png",
};
const START_FILE = "start.js";
const START =
  `SwaggerUIBundle({ url: ${JSON.stringify(`${API_PREFIX}/openapi.json`)}, dom_id: "#viewer", ` +
  "deepLinking: true, " +
  `persistAuthorization: false });\n`;

export function openViewer(serviceName: string): Viewer {
  const folder = dirname(require.resolve("swagger-ui-dist/package.json"));
  const files = new Map<string, ViewerFile>(
    Object.entries(FILES).map(([name, contentType]) => [
      name,
      { contentType, content: readFileSync(join(folder, name)) },
    ]),
  );
  files.set(START_FILE, { contentType: "text/javascript; charset=utf-8", content: START });
  return { page: pageOf(serviceName), file: (name) => files.get(name) };
}

/** The service name consists of letters and digits: nothing to escape. */
function pageOf(serviceName: string): string {
  const at = `${API_PREFIX}/swagger-ui`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'">
<title>${serviceName} API</title>
<link rel="stylesheet" href="${at}/swagger-ui.css">
<link rel="icon" href="${at}/favicon-32x32.png">
</head>
<body>
<div id="viewer"></div>
<script src="${at}/swagger-ui-bundle.js"></script>
<script src="${at}/${START_FILE}"></script>
</body>
</html>
`;
}
