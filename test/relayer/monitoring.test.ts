/**
 * monitoring/: every metric that the dashboard and the alert rules read is exported by the relayer, and every file
 * mounted by the compose file exists.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { parse } from "yaml";
import type { ChainStats } from "../../relayer/chain/types";
import { openDocs } from "../../relayer/site/docs";
import { Metrics } from "../../relayer/metrics";
import { unpinnedImages } from "../../scripts/operator/compose";

const FOLDER = join(__dirname, "..", "..", "monitoring");
const read = (file: string): string => readFileSync(join(FOLDER, file), "utf8");
const yaml = <T>(file: string): T => parse(read(file)) as T;

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string; readonly runbook: string };
}
interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}
interface Dashboard {
  readonly uid: string;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition: string }[] };
}

const RULES = yaml<{ groups: { rules: Rule[] }[] }>("alerts.yaml").groups.flatMap(({ rules }) => rules);
const DASHBOARD = JSON.parse(read("grafana/dashboard.json")) as Dashboard;
const TARGETS = DASHBOARD.panels.flatMap(({ targets = [] }) => targets);
/** Labels added by Prometheus itself. */
const ADDED = ["instance", "job"];

/** Each metric of the exporter with its labels and their values. */
async function exported(): Promise<Map<string, Map<string, Set<string>>>> {
  const stats: ChainStats = {
    lanes: [0, 1].map((payer) => ({
      ...{ payer, address: `0x${"1".repeat(40)}` as never, balanceWei: 1n, nextNonce: 7, inFlight: 2 },
      ...{ draining: false, usable: payer > 0 },
    })),
    open: {},
    waiting: 0,
    headBlock: 90,
    headAgeSeconds: 0.5,
    followedBlock: 89,
  };
  const metrics = new Metrics();
  metrics.watchChain({ stats: () => Promise.resolve(stats) });
  metrics.watchPool(() => Promise.resolve({ size: 1, busy: 0, queued: 0 }));
  const never = { finishedAt: undefined, turnedAt: undefined };
  metrics.watchLedger(() => ({ accounts: 0, balanceCents: 0, reservedCents: 0, wrong: 0, ...never }));
  metrics.watchEndpoints({ endpointHeads: () => Promise.resolve([{ endpoint: 0, head: 90, isOfOtherChain: false }]) });
  const figures = { processorCents: 1, ledgerCents: 1, balanceCents: 1, wrong: 0, finishedAt: new Date() };
  metrics.watchProcessor(() => figures);
  metrics.countExchange({ endpoint: 0, seconds: 0.01, failure: undefined });
  metrics.watchStore(
    () => ({ busy: 0, idle: 1, waiting: 0 }),
    () => Promise.resolve(),
  );
  metrics.countRequest({ route: "addGroup", method: "POST", status: 500, seconds: 0.03 });
  metrics.countRun({ error: "timed_out", seconds: 0.002, serviceFault: true });
  metrics.watchWebhooks(() => Promise.resolve(0));
  const names = new Map<string, Map<string, Set<string>>>([["up", new Map([["job", new Set(["keywright-relayer"])]])]]);
  for (const line of (await metrics.text()).split("\n")) {
    const [, name = "", labels = ""] = /^([a-z_0-9]+)(?:\{(.*)\})? /.exec(line) ?? [];
    if (name === "") continue;
    const known = names.get(name) ?? new Map<string, Set<string>>();
    names.set(name, known);
    for (const [, label = "", value = ""] of labels.matchAll(/(\w+)="([^"]*)"/g))
      known.set(label, (known.get(label) ?? new Set()).add(value));
  }
  return names;
}

const WORDS = new Set(
  [
    "and or unless by on sum min max rate increase delta avg_over_time max_over_time min_over_time",
    "histogram_quantile time vector label_values",
  ].flatMap((words) => words.split(" ")),
);

type Exported = Awaited<ReturnType<typeof exported>>;
const GROUPING = /\b(?:by|on) \(([^)]*)\)/g;

/** What an expression reads that is not exported. */
function unknownIn(expr: string, names: Exported): string[] {
  const bare = expr.replace(GROUPING, "").replace(/\[[^\]]*\]|\boffset \w+/g, "");
  const read = [...bare.matchAll(/([a-z_][a-z_0-9]*)(?:\{([^}]*)\})?/gi)].filter(([, name = ""]) => !WORDS.has(name));
  const known = new Set([...ADDED, ...[...names.values()].flatMap((labels) => [...labels.keys()])]);
  const grouped = [...expr.matchAll(GROUPING)].flatMap(([, list = ""]) => list.split(",")).map((label) => label.trim());
  return [
    ...read.flatMap(([, name = "", matchers = ""]) => unmatched(name, matchers, names.get(name))),
    ...grouped.filter((label) => !known.has(label)).map((label) => `by (${label})`),
  ];
}

function unmatched(
  name: string,
  matchers: string,
  labels: ReadonlyMap<string, ReadonlySet<string>> | undefined,
): string[] {
  if (labels === undefined) return [name];
  const wanted = [...matchers.matchAll(/(\w+)(=~|=)"([^"]*)"/g)].filter(
    ([, label, , value]) => label !== "instance" || value !== "$instance",
  );
  return wanted
    .filter(([, label = "", operator, value = ""]) => {
      const isMatch = (one: string): boolean =>
        operator === "=" ? one === value : new RegExp(`^(?:${value})$`).test(one);
      return ![...(labels.get(label) ?? [])].some(isMatch);
    })
    .map(([matcher]) => `${name}{${matcher}}`);
}

describe("the monitoring files", () => {
  it("read only what the relayer exports, with its labels and values", async () => {
    const names = await exported();
    for (const { alert, expr } of RULES) expect(unknownIn(expr, names), alert).to.deep.equal([]);
    for (const { expr } of TARGETS) expect(unknownIn(expr, names), expr).to.deep.equal([]);
    expect(
      unknownIn('sum by (colour) (rate(relayer_run_seconds_bucket[5m])) > relayer_no_such{payer="0"}', names),
    ).to.have.members(["by (colour)", "relayer_no_such"]);
    expect(
      unknownIn('relayer_submissions_open{state="lost"} + relayer_lane_usable{colour="red"}', names),
    ).to.have.length(2);
  });

  it("alert on every metric that docs/operations.md says to watch, and link to a section of it", () => {
    const operations = readFileSync(join(__dirname, "..", "..", "docs", "operations.md"), "utf8");
    const watched = [...operations.matchAll(/^\| `((?:relayer|nodejs)_[a-z0-9_]+)/gm)].map(([, name = ""]) => name);
    expect(watched.length).to.be.greaterThan(15);
    const expressions = RULES.map(({ expr }) => expr).join("\n");
    for (const name of watched) expect(expressions, name).to.include(name);
    const page = openDocs("Keywright").page("operations")?.content ?? "";
    for (const { alert, annotations, labels } of RULES) {
      const [, anchor = ""] = annotations.runbook.split("docs/operations.md#");
      expect(page, alert).to.include(`id="${anchor}"`);
      expect(["page", "ticket"]).to.include(labels.severity);
      expect(annotations.summary !== "" && annotations.description !== "").to.equal(true);
    }
    expect(new Set(RULES.map(({ alert }) => alert)).size).to.equal(RULES.length);
  });

  it("show every metric of the relayer on the dashboard, without overlapping panels", async () => {
    const shown = TARGETS.map(({ expr }) => expr).join("\n");
    for (const name of (await exported()).keys())
      if (name.startsWith("relayer_"))
        expect(shown, name).to.match(new RegExp(`\\b${name.replace(/_(bucket|sum|count)$/, "")}(_bucket|_count)?\\b`));
    const cells = DASHBOARD.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
    );
    expect(new Set(cells).size).to.equal(cells.length);
    expect(new Set(DASHBOARD.panels.map(({ id }) => id)).size).to.equal(DASHBOARD.panels.length);
    expect(DASHBOARD.templating.list.map(({ name }) => name)).to.deep.equal(["instance"]);
  });

  it("mount files that exist, and name images by digest only", () => {
    const compose = read("compose.yaml");
    expect(
      unpinnedImages(compose.replace(/\$\{[A-Z]+_IMAGE:\?([^}]*)sha256:…\}/g, `$1sha256:${"a".repeat(64)}`)),
    ).to.deep.equal([]);
    const { services } = parse(compose) as { services: Record<string, { volumes: string[]; command?: string[] }> };
    const mounts = Object.values(services).flatMap(({ volumes }) => volumes.map((one) => one.split(":")));
    for (const [from = ""] of mounts)
      if (from.startsWith("./")) expect(existsSync(join(FOLDER, from)), from).to.equal(true);
    const inside = new Set(mounts.map(([, to = ""]) => to));
    const prometheus = read("prometheus.yaml");
    for (const [path] of prometheus.matchAll(/\/etc\/prometheus\/[a-z]+\.yaml/g))
      expect([...inside], path).to.include(path);
    expect(inside.has("/etc/prometheus/prometheus.yaml")).to.equal(true);
    const { providers } = yaml<{ providers: { options: { path: string } }[] }>(
      "grafana/provisioning/dashboards/keywright.yaml",
    );
    expect([...inside].some((path) => path.startsWith(`${providers[0]?.options.path}/`))).to.equal(true);
  });
});
