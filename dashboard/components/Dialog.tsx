import { Dialog as Radix } from "radix-ui";
import { useEffect, useRef, useState, type FormEvent, type ReactNode } from "react";
import { Button } from "./Button";
import { Icon } from "./icons";
import { Failure, Slow } from "./elements";
import { wordsOf } from "./failures";

interface Props {
  /** Default true: most are made when they open. */
  readonly open?: boolean;
  readonly onClose: () => void;
  readonly title: string;
  readonly about?: ReactNode;
  readonly wide?: boolean;
  /** False where somebody else's code asks beside the dialog, as the payer's bank does: it has to get the focus. */
  readonly modal?: boolean;
  /** False where closing would lose something that is shown once. */
  readonly closable?: boolean;
  readonly children?: ReactNode;
}

/** Typing may begin at once; without such a field the first control gets the focus. */
const FIRST_FIELD = "input:not([type=checkbox], [type=radio]), textarea";

/** What is behind a dialog that is not modal; behind others Radix sees to it. */
const setPageInert = (inert: boolean): void => void document.getElementById("root")?.toggleAttribute("inert", inert);

/** A dialog above an inert background that closes on Escape. Unless told otherwise it keeps the focus. */
export function Dialog({
  open = true,
  onClose,
  title,
  about,
  wide = false,
  modal = true,
  closable = true,
  children,
}: Props): ReactNode {
  const before = useRef<Element | null>(null);
  useEffect(() => (open && !modal ? () => setPageInert(false) : undefined), [open, modal]);
  const keep = (event: Event): void => void (closable || event.preventDefault());
  return (
    <Radix.Root open={open} modal={modal} onOpenChange={(next) => !next && closable && onClose()}>
      <Radix.Portal>
        {modal ? <Radix.Overlay className="scrim fade-in" /> : <div className="scrim fade-in" />}
        <Radix.Content
          className={`dialog fade-in stack ${wide ? "wide" : ""}`}
          onOpenAutoFocus={(event) => {
            before.current = document.activeElement;
            if (!modal) setPageInert(true);
            const field = (event.target as HTMLElement).querySelector<HTMLElement>(FIRST_FIELD);
            if (field === null) return;
            event.preventDefault();
            field.focus();
          }}
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            if (before.current instanceof HTMLElement) before.current.focus();
          }}
          onEscapeKeyDown={keep}
          onInteractOutside={(event) => event.preventDefault()}
          {...(about === undefined ? { "aria-describedby": undefined } : {})}
        >
          <div className="row-between">
            <Radix.Title asChild>
              <h2>{title}</h2>
            </Radix.Title>
            {closable && (
              <Radix.Close className="icon-button" aria-label="Close">
                <Icon name="close" />
              </Radix.Close>
            )}
          </div>
          {about !== undefined && (
            <Radix.Description asChild>
              <div className="soft">{about}</div>
            </Radix.Description>
          )}
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

export interface FormProps extends Omit<Props, "closable"> {
  readonly submit: string;
  readonly danger?: boolean;
  readonly ready?: boolean;
  /** Closes when it resolves, unless with false; a failure is shown and the input is kept. */
  readonly onSubmit: () => Promise<unknown>;
}

/** A dialog with one form and one submit button. It cannot be left while its outcome is pending. */
export function FormDialog({
  submit,
  danger = false,
  ready = true,
  onSubmit,
  onClose,
  children,
  ...dialog
}: FormProps): ReactNode {
  const [busy, setBusy] = useState(false);
  return (
    <Dialog {...dialog} onClose={onClose} closable={!busy}>
      <Form
        onBusy={setBusy}
        submit={submit}
        danger={danger}
        ready={ready}
        onCancel={onClose}
        onSubmit={async () => void ((await onSubmit()) !== false && onClose())}
      >
        {children}
      </Form>
    </Dialog>
  );
}

interface InnerFormProps {
  readonly submit: string;
  readonly danger?: boolean;
  readonly ready?: boolean;
  readonly onCancel?: () => void;
  readonly onBusy?: (busy: boolean) => void;
  readonly onSubmit: () => Promise<unknown>;
  readonly children: ReactNode;
}

export function Form({
  submit,
  danger = false,
  ready = true,
  onCancel,
  onBusy,
  onSubmit,
  children,
}: InnerFormProps): ReactNode {
  const [busy, setBusyHere] = useState(false);
  const setBusy = (next: boolean): void => {
    setBusyHere(next);
    onBusy?.(next);
  };
  const [failure, setFailure] = useState<string>();
  const send = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    // A form in a nested dialog must not submit the outer one.
    event.stopPropagation();
    if (busy || !ready) return;
    setBusy(true);
    setFailure(undefined);
    try {
      await onSubmit();
    } catch (error) {
      setFailure(wordsOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form className="stack" onSubmit={(event) => void send(event)}>
      {children}
      <Failure error={failure} />
      {busy && (
        <Slow>
          This takes longer than usual: the service waits for the chain. It goes on, and pressing again does nothing
          twice.
        </Slow>
      )}
      <div className="dialog-foot">
        {onCancel !== undefined && (
          <Button variant="quiet" disabled={busy} onPress={onCancel}>
            Cancel
          </Button>
        )}
        <Button type="submit" variant={danger ? "danger solid" : "primary"} busy={busy} disabled={!ready}>
          {submit}
        </Button>
      </div>
    </form>
  );
}
