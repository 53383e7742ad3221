// Sources of a price, to try the oracle with. Writes its address into sources.url.
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";

const PRICES = { "/a": 100, "/b": 101, "/c": 102, "/far": 250 };
const server = createServer(({ url }, response) =>
  response.writeHead(url in PRICES ? 200 : 404).end(JSON.stringify({ price: PRICES[url] })),
);
server.listen(0, "127.0.0.1", () => writeFileSync("sources.url", `http://127.0.0.1:${server.address().port}`));
