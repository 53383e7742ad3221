import { useEffect, useState, type ReactNode } from "react";
import { wordsOf } from "./failures";
import { Icon } from "./icons";
import { useMessages } from "./Messages";
import { exactly, moment, short } from "./text";

export function Notice({
  kind = "neutral",
  children,
}: {
  readonly kind?: "neutral" | "success" | "error" | "warning";
  readonly children: ReactNode;
}): ReactNode {
  return (
    <div className={`notice ${kind}`} role={kind === "error" ? "alert" : undefined}>
      <div className="grow">{children}</div>
    </div>
  );
}

/** Why something failed, by an error or in words; nothing where it did not. */
export function Failure({ error }: { readonly error: unknown }): ReactNode {
  if (error === null || error === undefined) return null;
  return <Notice kind="error">{typeof error === "string" ? error : wordsOf(error)}</Notice>;
}

interface AbsentProps {
  readonly from: { readonly isComplete: boolean; readonly error: Error | null };
  readonly children: ReactNode;
}

/** What is said of something that a list does not have: only once all of the list was read. */
export function Absent({ from: { isComplete, error }, children }: AbsentProps): ReactNode {
  if (isComplete) return children;
  return error === null ? <Spinner /> : <Failure error={error} />;
}

export function Badge({
  kind = "neutral",
  children,
}: {
  readonly kind?: "neutral" | "success" | "error" | "warning";
  readonly children: ReactNode;
}): ReactNode {
  return <span className={`badge ${kind}`}>{children}</span>;
}

export function Empty({ title, children }: { readonly title: string; readonly children: ReactNode }): ReactNode {
  return (
    <div className="empty">
      <h2>{title}</h2>
      <div className="stack-s">{children}</div>
    </div>
  );
}

export function Spinner({ label = "Loading" }: { readonly label?: string }): ReactNode {
  return (
    <div className="row soft" role="status">
      <span className="spinner" aria-hidden="true" />
      {label} …
    </div>
  );
}

const SLOW_MS = 8_000;

/** What to know when something takes long; empty until then. */
export function Slow({ children }: { readonly children: ReactNode }): ReactNode {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), SLOW_MS);
    return () => clearTimeout(timer);
  }, []);
  return isSlow ? (
    <p className="soft small" role="status">
      {children}
    </p>
  ) : null;
}

export function PageHead({
  title,
  about,
  children,
}: {
  readonly title: ReactNode;
  readonly about?: ReactNode;
  readonly children?: ReactNode;
}): ReactNode {
  return (
    <header className="page-head">
      <div className="grow">
        <h1 tabIndex={-1}>{title}</h1>
        {about !== undefined && <p className="about">{about}</p>}
      </div>
      {children !== undefined && <div className="row">{children}</div>}
    </header>
  );
}

export function Facts({
  items,
}: {
  readonly items: readonly (readonly [label: string, value: ReactNode])[];
}): ReactNode {
  return (
    <dl className="facts">
      {items.map(([label, value]) => (
        <FactRow key={label} label={label} value={value} />
      ))}
    </dl>
  );
}

function FactRow({ label, value }: { readonly label: string; readonly value: ReactNode }): ReactNode {
  return (
    <>
      <dt>{label}</dt>
      <dd>{value}</dd>
    </>
  );
}

export function Figure({
  label,
  value,
  hint,
}: {
  readonly label: string;
  readonly value: ReactNode;
  readonly hint?: ReactNode;
}): ReactNode {
  return (
    <div className="figure">
      <span className="soft small">{label}</span>
      <span className="value">{value}</span>
      {hint !== undefined && <span className="soft small">{hint}</span>}
    </div>
  );
}

/** A human-readable time; exact to the second, with time zone, in the tooltip. */
export function When({ at }: { readonly at: number | string }): ReactNode {
  const time = new Date(at);
  return (
    <time dateTime={time.toISOString()} title={exactly(time)}>
      {moment(time)}
    </time>
  );
}

/** Copies a text to the clipboard; a tick confirms success, a message tells that it failed. */
export function CopyButton({ text, what }: { readonly text: string; readonly what: string }): ReactNode {
  const [done, setDone] = useState(false);
  const say = useMessages();
  const copy = async (): Promise<void> => {
    try {
      // Without TLS there is no clipboard.
      await navigator.clipboard.writeText(text);
    } catch {
      return say(`The ${what} was not copied: select it and copy it by hand.`);
    }
    setDone(true);
    setTimeout(() => setDone(false), 2_000);
  };
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={done ? "Copied" : `Copy ${what}`}
      onClick={() => void copy()}
    >
      <Icon name={done ? "done" : "copy"} />
    </button>
  );
}

/** A long id, shortened; in full in the tooltip and the clipboard, with a link where there is a target. */
export function Id({
  value,
  what,
  href,
  whole = false,
}: {
  value: string;
  what: string;
  href?: string | undefined;
  whole?: boolean;
}): ReactNode {
  return (
    <span className="copyable">
      <span className={`text code ${whole ? "whole" : ""}`} title={value}>
        {whole ? value : short(value)}
      </span>
      <CopyButton text={value} what={what} />
      {href !== undefined && (
        <a
          className="icon-button"
          href={href}
          target="_blank"
          rel="noreferrer"
          aria-label={`Show ${what} in the explorer`}
        >
          <Icon name="out" />
        </a>
      )}
    </span>
  );
}

export function CodeBlock({ text, what }: { readonly text: string; readonly what: string }): ReactNode {
  return (
    <div className="stack-s">
      <div className="row-between">
        <span className="label">{what}</span>
        <CopyButton text={text} what={what} />
      </div>
      <pre className="code-block" tabIndex={0} aria-label={what} role="region">
        {text}
      </pre>
    </div>
  );
}
