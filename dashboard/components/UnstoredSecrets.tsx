import type { ReactNode } from "react";
import { endAttempt, useUnstoredSecrets, type SecretAttempt } from "../session/attempts";
import { useSecrets } from "../session/secrets";
import { Button } from "./Button";
import { Notice } from "./elements";
import { quoted } from "./text";

interface Props {
  /** The account's id; empty for accounts that are being created. */
  readonly account: string;
  /** Repeats the request under its idempotency key and shows the secret. */
  readonly again: (attempt: SecretAttempt) => Promise<void>;
}

/** Keys that may exist without having been stored: their answer was lost, or the page was left before. */
export function UnstoredSecrets({ account, again }: Props): ReactNode {
  const { isBusy } = useSecrets();
  const attempts = useUnstoredSecrets(account);
  if (isBusy) return null;
  return attempts.map((attempt) => {
    const { kind, label } = attempt.secret;
    const what = kind === "trigger" ? "secret" : "key";
    return (
      <Notice key={attempt.name} kind="warning">
        <div className="row-between">
          <span>
            You requested the {kind} {quoted(label, "without a name")}, and have not stored its {what}.
          </span>
          <span className="row">
            <Button size="small" onPress={() => again(attempt)}>
              Show the {what}
            </Button>
            <Button size="small" variant="quiet" onPress={() => endAttempt(attempt.name)}>
              Forget it
            </Button>
          </span>
        </div>
      </Notice>
    );
  });
}
