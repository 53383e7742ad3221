/**
 * The interactive API viewer, self-hosted: a real browser renders every operation from the service's own files, without
 * requests to other hosts.
 */
import { expect } from "chai";
import { useBrowser } from "../support/browser";
import { members, send } from "../support/http";
import { useStack } from "../support/stack";

describe("the viewer", function () {
  this.timeout(90_000);
  const stack = useStack();
  const browser = useBrowser();

  it("shows every operation without a request to another host", async () => {
    const page = await browser().newPage();
    const [problems, elsewhere]: [string[], string[]] = [[], []];
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("console", (message) => void (message.type() === "error" && problems.push(message.text())));
    page.on(
      "request",
      (request) =>
        void (
          /^(data|blob):/.test(request.url()) ||
          request.url().startsWith(stack().baseUrl) ||
          elsewhere.push(request.url())
        ),
    );
    await page.goto(`${stack().baseUrl}/core/v1/swagger-ui`);
    await page.waitForSelector(".opblock");
    const document = members(await send(`${stack().baseUrl}/core/v1/openapi.json`));
    const operations = Object.values(document["paths"] as object).flatMap((item) => Object.keys(item as object));
    expect(await page.locator(".opblock").count()).to.equal(operations.length);
    expect({ problems, elsewhere }).to.deep.equal({ problems: [], elsewhere: [] });
    await page.close();
  });

  it("is the same page with a trailing slash", async () => {
    const { text, headers } = await send(`${stack().baseUrl}/core/v1/swagger-ui`);
    expect(headers).to.include({ "x-frame-options": "DENY" });
    expect((await send(`${stack().baseUrl}/core/v1/swagger-ui/`)).text).to.equal(text);
  });

  it("serves no file but its own", async () => {
    for (const file of [
      "package.json",
      "..%2fpackage.json",
      "%2e%2e%2f%2e%2e%2fpackage.json",
      "index.html",
      "constructor",
      "__proto__",
    ]) {
      expect((await send(`${stack().baseUrl}/core/v1/swagger-ui/${file}`)).status, file).to.equal(404);
    }
  });
});
