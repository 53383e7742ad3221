import { useIsFetching, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { Suspense, useEffect, useId, useState, type ReactNode } from "react";
import icon from "../icon.svg";
import { Button } from "../components/Button";
import { Empty, Notice, PageHead, Spinner } from "../components/elements";
import { wordsOf } from "../components/failures";
import { useMessages } from "../components/Messages";
import { Icon } from "../components/icons";
import { UnstoredSecrets } from "../components/UnstoredSecrets";
import { endAttempt, type SecretAttempt } from "../session/attempts";
import { createClient, type Body } from "../../client";
import { ORIGIN } from "../session/origin";
import { openClient, useSession, useSessions } from "../session/context";
import { useSecrets } from "../session/secrets";
import { useKeep } from "../session/once";
import type { KeySession } from "../session/types";
import { ScreenBoundary } from "../components/ScreenBoundary";
import type { Palette } from "./Palette";
import { NAV, PLACES, REFERENCES, type NavGroup } from "./nav";
import { readAgain, useAccount } from "./queries";
import { ThemeSwitch } from "./ThemeSwitch";

const SERVICE = document.title;

export function Shell(): ReactNode {
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const [menu, setMenu] = useState(false);
  const [search, setSearch] = useState<{ readonly Palette: typeof Palette }>();
  const openSearch = async (): Promise<void> => setSearch(await import("./Palette"));
  useShortcut(openSearch);
  useEffect(() => setMenu(false), [path]);
  useTitle(path);
  return (
    <>
      <a
        className="button skip"
        href="#main"
        onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}
      >
        Skip to the content
      </a>
      <div className="shell">
        <header className="topbar">
          <div className="brand">
            <img src={icon} alt="" />
            {SERVICE}
          </div>
          <Button variant="quiet" onPress={() => setMenu(!menu)} aria-expanded={menu} aria-controls="sidebar">
            Menu
          </Button>
        </header>
        <Sidebar open={menu} onChosen={() => setMenu(false)} onSearch={openSearch} />
        <main className="main-side" id="main" tabIndex={-1}>
          <SimulatedStrip />
          <div className="screen">
            <div className="column">
              <ConnectionNotice />
              <ServiceState isOverview={path === "/"} />
              <Unstored />
              <ScreenBoundary key={path}>
                <Suspense fallback={<Spinner />}>
                  <Outlet />
                </Suspense>
              </ScreenBoundary>
            </div>
          </div>
        </main>
      </div>
      {search !== undefined && <search.Palette onClose={() => setSearch(undefined)} />}
    </>
  );
}

/** Ctrl+K and ⌘K, except in a dialog or an editor that uses them itself. */
function useShortcut(act: () => Promise<void>): void {
  const say = useMessages();
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.defaultPrevented) return;
      if (document.querySelector("[role=dialog]") !== null) return;
      event.preventDefault();
      act().catch((error: unknown) => say(wordsOf(error)));
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  });
}

function useTitle(path: string): void {
  const { name = "" } = PLACES.find(({ to }) => (to === "/" ? path === "/" : path.startsWith(to))) ?? {};
  useEffect(() => {
    document.title = name === "" ? SERVICE : `${name} · ${SERVICE}`;
    return () => void (document.title = SERVICE);
  }, [name]);
}

interface SidebarProps {
  readonly open: boolean;
  readonly onChosen: () => void;
  readonly onSearch: () => Promise<void>;
}

const isMac = /Mac|iP(hone|ad)/.test(navigator.userAgent);

function Sidebar({ open, onChosen, onSearch }: SidebarProps): ReactNode {
  return (
    <aside className={`sidebar ${open ? "open" : ""}`} id="sidebar" aria-label="Sidebar">
      <div className="brand">
        <img src={icon} alt="" />
        {SERVICE}
      </div>
      <Button size="small" className="search-button" onPress={onSearch} aria-keyshortcuts="Control+K Meta+K">
        <Icon name="search" />
        Search
        <kbd aria-hidden="true">{isMac ? "⌘K" : "Ctrl K"}</kbd>
      </Button>
      <nav className="nav" aria-label="Main">
        {NAV.map((group) => (
          <NavList key={group.title} group={group} onChosen={onChosen} />
        ))}
      </nav>
      <Who />
    </aside>
  );
}

function NavList({ group, onChosen }: { readonly group: NavGroup; readonly onChosen: () => void }): ReactNode {
  const title = useId();
  return (
    <div>
      {group.title !== "" && (
        <div className="nav-title" id={title}>
          {group.title}
        </div>
      )}
      <ul aria-labelledby={group.title === "" ? undefined : title}>
        {group.places.map(({ to, name, icon: image }) => (
          <li key={to}>
            <Link
              to={to}
              activeOptions={{ exact: to === "/" }}
              activeProps={{ "aria-current": "page" }}
              onClick={onChosen}
            >
              <Icon name={image} />
              {name}
            </Link>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Opened in tabs of their own: a key that is not remembered ends with this page. */
function References(): ReactNode {
  return (
    <ul className="references small" aria-label="Reference">
      {REFERENCES.map(({ href, name }) => (
        <li key={href}>
          <a href={href} target="_blank" rel="noreferrer">
            {name}
            <span className="hidden-visually"> (opens in a new tab)</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

/** Queries of the account; others are of the service, or never change. */
const FIGURES: ReadonlySet<unknown> = new Set(["account", "list", "listing", "members", "signed", "why"]);

/** When the oldest of the page's figures was read, and a button that reads them again. */
function AsOf(): ReactNode {
  const queries = useQueryClient();
  const isReading = useIsFetching() > 0;
  const figures = queries
    .getQueryCache()
    .findAll({ type: "active", predicate: (query) => FIGURES.has(query.queryKey[0]) });
  const read = figures.map(({ state }) => state.dataUpdatedAt).filter((at) => at > 0);
  const at = read.length === 0 ? 0 : Math.min(...read);
  return (
    <div className="as-of small soft">
      <span>
        {at === 0 || isReading
          ? "Reading"
          : `As of ${new Date(at).toLocaleTimeString(undefined, { timeStyle: "short" })}`}
      </span>
      <Button size="small" variant="quiet" onPress={() => readAgain(queries, { type: "active" })}>
        Refresh
      </Button>
    </div>
  );
}

function Who(): ReactNode {
  const session = useSession();
  const { end } = useSessions();
  const { data = session.account } = useAccount();
  const as =
    session.kind === "wallet"
      ? session.wallet.forSafe
        ? "preparing for a multisig"
        : `with ${session.wallet.name}`
      : session.isOwner
        ? "with the account key"
        : "with a usage key";
  return (
    <div className="foot">
      <div className="who">
        <span className="name">{data.name === "" ? "Your account" : data.name}</span>
        <span className="soft small">{as}</span>
      </div>
      <References />
      <AsOf />
      <ThemeSwitch />
      <Button size="small" onPress={() => end()}>
        Sign out
      </Button>
    </div>
  );
}

/** Shown on every screen, so that a simulated TEE is not mistaken for a real one. */
function SimulatedStrip(): ReactNode {
  const { data } = useQuery({ queryKey: ["info"], queryFn: () => openClient.info(), staleTime: Infinity });
  if (data === undefined || data.tee === "dstack") return null;
  return (
    <div className="simulated">
      {data.tee === "simulated"
        ? "Simulated TEE: for development. Keys here are not protected by hardware."
        : "This service runs without a TEE."}
    </div>
  );
}

function ConnectionNotice(): ReactNode {
  const session = useSession();
  const queries = useQueryClient();
  const { error } = useAccount();
  if (error === null) return null;
  const again = async (): Promise<void> => {
    if (session.kind === "wallet") await session.wallet.ready();
    await readAgain(queries, { type: "active" });
  };
  const why =
    session.kind === "wallet"
      ? "Your wallet does not reach the chain, or is on another network."
      : "The service cannot be reached.";
  return (
    <Notice kind="error">
      <div className="row-between">
        <span>{why} What you see may be old.</span>
        <Button size="small" onPress={again}>
          Try again
        </Button>
      </div>
    </Notice>
  );
}

/** Its question is repeated soon enough: a state is told at once, not after several attempts. */
const stateClient = createClient({ ...ORIGIN, retries: 0 });

/** What keeps the service from working as usual, and what to do about it; nothing when all is well. */
function ServiceState({ isOverview }: { readonly isOverview: boolean }): ReactNode {
  const session = useSession();
  const { data } = useQuery({
    queryKey: ["ready"],
    queryFn: () =>
      stateClient.ready().then(
        () => "",
        (error: unknown) => wordsOf(error),
      ),
    refetchInterval: 30_000,
    staleTime: 30_000,
  });
  const { data: account = session.account } = useAccount();
  const { data: balance } = useQuery<{ readonly balance_cents: number }>({
    queryKey: ["signed", "balance"],
    enabled: false,
  });
  return (
    <>
      {data !== undefined && data !== "" && (
        <Notice kind="warning">
          The service is not ready: {data} Reading works. Changes and runs may be refused or wait; nothing is done twice
          when you try again.
        </Notice>
      )}
      {!isOverview && account.frozen && (
        <Notice kind="warning">
          The account is frozen: no key can run anything.{" "}
          {session.isOwner ? <Link to="/account">Unfreeze it on the Account page</Link> : "Its owner can unfreeze it."}
        </Notice>
      )}
      {!isOverview && balance !== undefined && balance.balance_cents <= 0 && (
        <Notice kind="warning">
          There is no credit left: runs and changes are refused. <Link to="/credit">Add funds</Link>
        </Notice>
      )}
    </>
  );
}

/** A wallet's secrets are stored before they are attached: nothing has to be asked for again. */
function Unstored(): ReactNode {
  const session = useSession();
  const { during } = useSecrets();
  const keep = useKeep();
  if (session.kind !== "key") return null;
  const again = async (attempt: SecretAttempt): Promise<void> => {
    const secret = await during(askAgain(session, attempt));
    void keep(attempt.secret, secret).then(() => endAttempt(attempt.name));
  };
  return <UnstoredSecrets account={session.account.id} again={again} />;
}

async function askAgain({ client }: KeySession, { key: idempotencyKey, secret }: SecretAttempt): Promise<string> {
  const { kind, body } = secret;
  if (kind === "usage key")
    return (await client.addUsageApiKey(body as Body<"addUsageApiKey">, { idempotencyKey })).usage_api_key;
  return (await client.createTrigger(body as Body<"createTrigger">, { idempotencyKey })).hook_secret ?? "";
}

export function Missing(): ReactNode {
  return (
    <>
      <PageHead title="Nothing here" />
      <Empty title="There is no such screen">
        <p>Choose one on the left.</p>
      </Empty>
    </>
  );
}
