/** Dialogs whose form performs a change. */
import { useState, type ReactNode } from "react";
import { FormDialog, type FormProps } from "../components/Dialog";
import { StringsFields, type Strings } from "../components/Field";
import type { Change } from "./change";
import { useChanges } from "./ChangesProvider";

interface Props<R extends object> extends Omit<FormProps, "onSubmit"> {
  /** Asked for when the form is submitted. */
  readonly change: () => Change<R>;
  readonly onDone?: () => unknown;
}

/** It stays if the change is cancelled in its review. */
export function ChangeDialog<R extends object>({ change, onDone, ...form }: Props<R>): ReactNode {
  const { perform } = useChanges();
  const submit = async (): Promise<boolean> => {
    const { state } = await perform(change());
    if (state === "done") await onDone?.();
    return state !== "cancelled";
  };
  return <FormDialog {...form} onSubmit={submit} />;
}

interface RenameProps extends Pick<FormProps, "title" | "onClose"> {
  readonly of: Strings;
  readonly change: (strings: Strings) => Change;
}

export function RenameDialog({ of, change, title, onClose }: RenameProps): ReactNode {
  const [{ name, description }, setStrings] = useState(of);
  return (
    <ChangeDialog title={title} submit="Save" onClose={onClose} change={() => change({ name, description })}>
      <StringsFields value={{ name, description }} onChange={setStrings} />
    </ChangeDialog>
  );
}
