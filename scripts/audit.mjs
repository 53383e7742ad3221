// Fails on known vulnerabilities of high or critical severity in production packages, unless .ci/audit-exceptions.json
// has an unexpired exception. Passes with a notice where the registry's advisories cannot be reached: being offline is
// not a defect of the change.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const TIMEOUT_MS = 60_000;
const SEVERE = ["high", "critical"];

/** npm's audit report, or undefined where the registry cannot be reached. */
function auditReport() {
  const { stdout } = spawnSync("npm", ["audit", "--omit=dev", "--json"], {
    cwd: root,
    encoding: "utf8",
    timeout: TIMEOUT_MS,
    maxBuffer: 2 ** 26,
  });
  try {
    const report = JSON.parse(stdout);
    return report.vulnerabilities ? report : undefined;
  } catch {
    return undefined;
  }
}

/** Each severe advisory once, with its package. */
export function severeAdvisories({ vulnerabilities }) {
  const causes = Object.values(vulnerabilities).flatMap(({ via }) => via.filter((cause) => typeof cause === "object"));
  const severe = causes.filter(({ severity }) => SEVERE.includes(severity));
  return [
    ...new Map(
      severe.map((cause) => [
        cause.url,
        { advisory: cause.url.split("/").at(-1), package: cause.name, title: cause.title },
      ]),
    ).values(),
  ];
}

/** The reason why this advisory fails the step; undefined when an unexpired exception covers it. */
export function problemWith({ advisory, package: name, title }, exceptions, today) {
  const exception = exceptions.find((entry) => entry.advisory === advisory && entry.package === name);
  if (!exception) return `${advisory} in ${name}: ${title}`;
  return exception.until < today ? `${advisory} in ${name}: its exception ran out on ${exception.until}` : undefined;
}

function main() {
  const report = auditReport();
  if (!report) return console.log("The registry's advisories cannot be reached from here: nothing was checked.");
  const { exceptions } = JSON.parse(readFileSync(join(root, ".ci", "audit-exceptions.json"), "utf8"));
  const today = new Date().toISOString().slice(0, 10);
  const advisories = severeAdvisories(report);
  const problems = advisories
    .map((advisory) => problemWith(advisory, exceptions, today))
    .filter((problem) => problem !== undefined);
  for (const problem of problems) console.error(problem);
  console.log(
    `${advisories.length} severe advisories, ${advisories.length - problems.length} of them explained in ` +
      ".ci/audit-exceptions.json.",
  );
  if (problems.length > 0) process.exitCode = 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
