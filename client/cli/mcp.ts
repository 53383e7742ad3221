/** `keywright mcp`. The server and its libraries are loaded on demand, to keep the other commands fast to start. */
import type { Command } from "commander";
import type { Context } from "./context";
import { WrongUse } from "../errors";
import type * as McpServer from "./mcpServer";
import { defined } from "../../protocol/defined";

export function addMcp(program: Command, context: Context): void {
  program
    .command("mcp")
    .description(
      "a Model Context Protocol server on standard input and output, with a usage key (KEYWRIGHT_API_KEY or a login)",
    )
    .option("--allow-writes", "also the tools that change or run something; without it everything is read-only")
    .option(
      "--http <port>",
      "streamable HTTP at /mcp of this machine instead; each client sends a usage key as its bearer token",
    )
    .action(async ({ allowWrites, http }: { allowWrites?: boolean; http?: string }) => {
      const port = http === undefined ? undefined : Number(http);
      if (port !== undefined && !(Number.isInteger(port) && port >= 0 && port <= 65_535))
        throw new WrongUse("--http takes a port, 0 to 65535; 0 chooses one.");
      const { serveAgent } = require("./mcpServer") as typeof McpServer;
      await serveAgent(context, { allowWrites: allowWrites === true, ...defined({ http: port }) });
    });
}
