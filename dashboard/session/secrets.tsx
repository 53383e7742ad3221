/**
 * Secrets that are shown once. They are shown above all screens, so that leaving the screen that requested one does not
 * lose it; while one is requested or shown, leaving the page asks first.
 */
import { createContext, useCallback, useContext, useEffect, useMemo, useState, type ReactNode } from "react";
import { Dialog } from "../components/Dialog";
import { Notice } from "../components/elements";
import { SecretOnce } from "../components/SecretOnce";

export interface NewSecret {
  readonly title: string;
  readonly about: string;
  readonly warning?: string | undefined;
  readonly secret: string;
  /** The secret's name in labels: "API key". */
  readonly what: string;
  /** The file name for saving it. */
  readonly file: string;
  /** Called once it is stored. If it fails the secret stays on the screen. */
  readonly onKept: () => void | Promise<void>;
}

interface Secrets {
  readonly show: (secret: NewSecret) => void;
  /** Leaving the page asks first until this work, which makes a secret, is done. */
  readonly during: <T>(work: Promise<T>) => Promise<T>;
  /** A secret is requested or shown. */
  readonly isBusy: boolean;
}

const Context = createContext<Secrets | undefined>(undefined);

export function useSecrets(): Secrets {
  const secrets = useContext(Context);
  if (secrets === undefined) throw new Error("there is no context for secrets here");
  return secrets;
}

export function SecretsProvider({ children }: { readonly children: ReactNode }): ReactNode {
  const [shown, setShown] = useState<readonly NewSecret[]>([]);
  const [pending, setPending] = useState(0);
  const show = useCallback((secret: NewSecret) => setShown((now) => [...now, secret]), []);
  const during = useCallback(<T,>(work: Promise<T>): Promise<T> => {
    setPending((now) => now + 1);
    return work.finally(() => setPending((now) => now - 1));
  }, []);
  const isBusy = pending > 0 || shown.length > 0;
  useAskBeforeLeaving(isBusy);
  const value = useMemo(() => ({ show, during, isBusy }), [show, during, isBusy]);
  const [first] = shown;
  return (
    <Context value={value}>
      {children}
      {first !== undefined && (
        <Dialog closable={false} onClose={() => undefined} title={first.title} about={first.about}>
          {first.warning !== undefined && <Notice kind="warning">{first.warning}</Notice>}
          <SecretOnce
            key={first.secret}
            secret={first.secret}
            what={first.what}
            file={first.file}
            onKept={async () => {
              await first.onKept();
              setShown((now) => now.filter((one) => one !== first));
            }}
          />
        </Dialog>
      )}
    </Context>
  );
}

function useAskBeforeLeaving(active: boolean): void {
  useEffect(() => {
    if (!active) return;
    const ask = (event: BeforeUnloadEvent): void => event.preventDefault();
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
  }, [active]);
}
