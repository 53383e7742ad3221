/** `keywright mcp`. The server and its libraries are loaded on demand, to keep the other commands fast to start. */
import type { Command } from "commander";
import type { Context } from "./context";
import type * as McpServer from "./mcpServer";

export function addMcp(program: Command, context: Context): void {
  program
    .command("mcp")
    .description(
      "a Model Context Protocol server on standard input and output, with a usage key (KEYWRIGHT_API_KEY or a login)",
    )
    .option("--allow-writes", "also the tools that change or run something; without it everything is read-only")
    .action(async ({ allowWrites }: { allowWrites?: boolean }) => {
      const { serveAgent } = require("./mcpServer") as typeof McpServer;
      await serveAgent(context, allowWrites === true);
    });
}
