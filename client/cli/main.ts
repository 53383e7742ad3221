/** The program's entry: `bin` of the package. */
import { processIo } from "./io";
import { runCli } from "./program";

// Who reads the output may stop, as `head` does: what a command has begun is still done to its end.
for (const stream of [process.stdout, process.stderr])
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });

void runCli(process.argv.slice(2), processIo()).then((code) => {
  process.exitCode = code;
});
