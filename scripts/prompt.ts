import { createInterface } from "node:readline";

/** Reads one line without showing it; from a pipe, the first line. */
export function askSecret(question: string): Promise<string> {
  const reader = createInterface({ input: process.stdin, output: process.stderr, terminal: process.stdin.isTTY });
  process.stderr.write(question);
  return new Promise((resolve, reject) => {
    // What readline would echo goes nowhere while the answer is typed.
    if (process.stdin.isTTY) Object.assign(reader, { _writeToOutput: () => undefined });
    reader.once("close", () => reject(new Error("no answer was given")));
    reader.once("line", (line) => {
      resolve(line.trim());
      process.stderr.write("\n");
      reader.close();
    });
  });
}
