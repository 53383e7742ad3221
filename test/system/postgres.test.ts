/** The tests of the services' store on the embedded database, run on PostgreSQL. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { expect } from "chai";
import { startPostgres, type TestPostgres } from "../../scripts/dev/postgres";

const ROOT = join(__dirname, "..", "..");
/** They open the embedded database whatever is set: `npm test` has run them. */
const EMBEDDED = [
  "test/relayer/store/{embedded,instances,pieces,preparedStatements,years}.test.ts",
  "test/relayer/credits/{audit,kill,processorCheck}.test.ts",
  "test/relayer/triggers/{book,byHand,spread}.test.ts",
];

describe("on a real PostgreSQL", () => {
  let postgres: TestPostgres;
  before(async function () {
    this.timeout(60_000);
    postgres = await startPostgres();
  });
  after(() => postgres.stop());

  const suites = {
    store: "store/**/*",
    credits: "credits/**/*",
    triggers: "triggers/**/*",
    webhooks: "webhooks/outbox",
  };
  for (const [suite, files] of Object.entries(suites)) {
    it(`the tests of ${suite} pass`, async function () {
      this.timeout(300_000);
      const databaseUrl = await postgres.database(`suite_${suite}`);
      const { passes, failures } = await mocha(`test/relayer/${files}.test.ts`, {
        KEYWRIGHT_TEST_DATABASE_URL: databaseUrl,
      });
      expect(failures).to.deep.equal([]);
      expect(passes).to.be.at.least(1);
    });
  }
});

interface Outcome {
  readonly passes: number;
  /** Titles and messages of failed tests. */
  readonly failures: readonly string[];
}

async function mocha(spec: string, env: Record<string, string>): Promise<Outcome> {
  const args = [
    join(ROOT, "node_modules", "mocha", "bin", "mocha.js"),
    "--reporter",
    "json",
    ...EMBEDDED.flatMap((file) => ["--ignore", file]),
    "--spec",
    spec,
  ];
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  await new Promise((resolve) => child.once("close", resolve));
  const report = JSON.parse(output.slice(output.indexOf("{"))) as {
    stats: { passes: number };
    failures: { fullTitle: string; err: { message?: string } }[];
  };
  return {
    passes: report.stats.passes,
    failures: report.failures.map(({ fullTitle, err }) => `${fullTitle}: ${err.message ?? "?"}`),
  };
}
