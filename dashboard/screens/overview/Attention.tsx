/** Items that need the owner's attention, most urgent first; empty when there are none. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { readerOf, useAccount, useFirstListing, useUsageKeys, type Group, type UsageKey } from "../../app/queries";
import type { Page } from "../../../client";
import { Notice } from "../../components/elements";
import { day, dollars, listed, plural, quoted } from "../../components/text";
import { useSession } from "../../session/context";
import { useMay, type May } from "../../session/may";
import { stopped, type Trigger } from "../triggers/stopped";
import { ANY_ACTION, ANY_PKP, isLive } from "../pkps/uses";

const SOON_SECONDS = 7 * 86_400;
const LITTLE_CENTS = 100;

interface Point {
  readonly kind: "error" | "warning";
  readonly text: string;
  readonly to: string;
  readonly link: string;
  /** Whether this credential may do what the link says. */
  readonly isOffered?: boolean;
}
const warning = (text: string, to: string, link: string, isOffered = true): Point => ({
  kind: "warning",
  text,
  to,
  link,
  isOffered,
});

export function Attention({ balanceCents }: { readonly balanceCents: number | undefined }): ReactNode {
  const { data: account } = useAccount();
  const { items: keys } = useUsageKeys();
  const may = useMay();
  const anyPkp = useFirstListing({ pkp_id: ANY_PKP });
  const anyCode = useFirstListing({ hashed_cid: ANY_ACTION });
  const points = [
    ...aboutFreeze(account.frozen, may),
    ...aboutCredit(balanceCents),
    ...aboutTriggers(useStoppedTriggers()),
    ...aboutKeys(keys, may),
    ...aboutGroups(anyPkp, "any PKP"),
    ...aboutGroups(anyCode, "any code"),
    ...aboutNoGroup(account.group_count, account.wallet_count, may),
  ];
  if (points.length === 0) return null;
  return (
    <section className="stack-s" aria-label="Needs attention">
      <h2>Needs attention</h2>
      <ul className="stack-s">
        {points.map(({ kind, text, to, link, isOffered = true }) => (
          <li key={text}>
            <Notice kind={kind}>
              <div className="row-between">
                <span>{text}</span>
                {isOffered && <Link to={to}>{link}</Link>}
              </div>
            </Notice>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** A wallet would have to sign for the question. */
function useStoppedTriggers(): readonly Trigger[] {
  const session = useSession();
  const { data } = useQuery({
    queryKey: ["signed", "triggers"],
    queryFn: () => readerOf(session).listTriggers({ page_size: 1_000 }),
    enabled: session.kind === "key",
  });
  return stopped(data?.items ?? []);
}

function aboutTriggers(triggers: readonly Trigger[]): Point[] {
  if (triggers.length === 0) return [];
  const were = triggers.length === 1 ? "was" : "were";
  const text = `${named(triggers, "a trigger without a name")} ${were} paused by the service.`;
  return [{ kind: "error", text, to: "/triggers", link: "Look at why" }];
}

function aboutFreeze(frozen: boolean, { all: isOffered }: May): Point[] {
  const text = "The account is frozen: no key can run anything.";
  return frozen ? [{ kind: "error", text, to: "/account", link: "Unfreeze it", isOffered }] : [];
}

function aboutNoGroup(groups: number, pkps: number, { createGroups }: May): Point[] {
  if (groups > 0 || pkps === 0) return [];
  return [warning("There is no group yet, so nothing can use your PKPs.", "/groups", "Create a group", createGroups)];
}

function aboutCredit(cents: number | undefined): Point[] {
  if (cents === undefined || cents >= LITTLE_CENTS) return [];
  const text =
    cents <= 0 ? "There is no credit left: runs and changes are refused." : `Only ${dollars(cents)} of credit is left.`;
  return [{ kind: cents <= 0 ? "error" : "warning", text, to: "/credit", link: "Add credit" }];
}

function aboutKeys(keys: readonly UsageKey[], { all }: May): Point[] {
  const expired = keys.filter((key) => !isLive(key));
  const soon = keys.filter(
    (key) => isLive(key) && key.expiration !== "0" && Number(key.expiration) < Date.now() / 1000 + SOON_SECONDS,
  );
  const [first] = soon;
  const points: Point[] = [];
  if (first !== undefined) {
    const when = `${day(Number(first.expiration) * 1000)}${soon.length > 1 ? " or soon after" : ""}`;
    points.push(warning(`${named(soon)} will expire on ${when}.`, "/usage-keys", "Renew it", all));
  }
  if (expired.length > 0)
    points.push(warning(`${named(expired)} expired and can no longer be used.`, "/usage-keys", "Review usage keys"));
  return points;
}

const named = (all: readonly { readonly name: string }[], nameless = "a key without a name"): string =>
  listed(all.slice(0, 3).map(({ name }) => quoted(name, nameless))) + (all.length > 3 ? " and others" : "");

function aboutGroups({ items, total }: Page<Group>, what: string): Point[] {
  const [first] = items;
  if (first === undefined) return [];
  const names = items.slice(0, 3).map(({ id, name }) => quoted(name, `group ${id}`));
  const all = total > names.length ? [...names, plural(total - names.length, "more group")] : names;
  const who = total === 1 ? `The group ${names.join("")} lists` : `${listed(all)} list`;
  const to = total === 1 ? `/groups/${first.id}` : "/groups";
  return [warning(`${who} anything: ${what}.`, to, total === 1 ? "Review the group" : "Review groups")];
}
