import { useEffect, useState, type ReactNode } from "react";
import { ClientError } from "../../../client";
import icon from "../../icon.svg";
import { Button } from "../../components/Button";
import { Check, TextField } from "../../components/Field";
import { Form } from "../../components/Dialog";
import { Notice, Spinner } from "../../components/elements";
import { wordsOf } from "../../components/failures";
import { signInWithKey, useSessions } from "../../session/context";
import { rememberKey, rememberedKey } from "../../session/remember";
import { UnstoredSecrets } from "../../components/UnstoredSecrets";
import { CreateAccount, useCreateWithKey } from "./CreateAccount";
import { WalletSignIn } from "./WalletSignIn";

const SERVICE = document.title;

/** Sign-in with a key or a wallet, or a new account. */
export function SignIn(): ReactNode {
  const { farewell } = useSessions();
  const [creating, setCreating] = useState<"api" | "wallet">();
  const resuming = useRememberedKey();
  const createWithKey = useCreateWithKey();
  return (
    <main className="entrance">
      <section className="pitch">
        <div className="brand">
          <img src={icon} alt="" />
          {SERVICE}
        </div>
        <h1>Keys that only your code can use.</h1>
        <p>
          Create key pairs that live inside protected hardware, write the code that may use them, and decide who may run
          it.
        </p>
        <ol className="points">
          <li>No private key to store, copy or lose.</li>
          <li>Every permission is written on a public blockchain.</li>
          <li>You can check what runs, without trusting the operator.</li>
        </ol>
      </section>
      <section className="way-in" aria-label="Sign in">
        <div className="stack">
          {farewell !== undefined && <Notice kind="warning">{farewell}</Notice>}
          {resuming ? (
            <Spinner label="Signing you in again" />
          ) : (
            <>
              <h2>Welcome</h2>
              <UnstoredSecrets
                account=""
                again={({ secret }) => createWithKey(secret.body as Parameters<typeof createWithKey>[0])}
              />
              <KeySignIn />
              <div className="or">or</div>
              <WalletSignIn onCreate={() => setCreating("wallet")} />
              <p className="row soft">
                New here?
                <Button onPress={() => setCreating("api")}>Create account</Button>
              </p>
            </>
          )}
        </div>
      </section>
      {creating !== undefined && <CreateAccount mode={creating} onClose={() => setCreating(undefined)} />}
    </main>
  );
}

function KeySignIn(): ReactNode {
  const { begin } = useSessions();
  const [key, setKey] = useState("");
  const [remember, setRemember] = useState(false);
  return (
    <Form submit="Sign in" onSubmit={async () => begin(await signInWithKey(key, remember))}>
      <TextField
        label="API key"
        type="password"
        code
        required
        value={key}
        onChange={setKey}
        hint="Your account key or a usage key. It stays in the memory of this tab."
      />
      <Check
        label="Remember in this tab"
        hint="Survives a reload, and ends when the tab is closed."
        checked={remember}
        onChange={setRemember}
      />
    </Form>
  );
}

/** A remembered key signs in automatically after a reload; one that is refused is forgotten. */
function useRememberedKey(): boolean {
  const { begin, end, farewell } = useSessions();
  const [key] = useState(rememberedKey);
  const [resuming, setResuming] = useState(key !== undefined && farewell === undefined);
  useEffect(() => {
    if (key === undefined || !resuming) return;
    let gone = false;
    signInWithKey(key, true)
      .then((session) => !gone && begin(session))
      .catch((error: unknown) => {
        if (gone) return;
        const mayWork = error instanceof ClientError && error.retryable;
        end(
          mayWork
            ? `${wordsOf(error)} The key is still remembered: load this page again.`
            : "The remembered key could not be used. Sign in again.",
        );
        if (mayWork) rememberKey(key);
      })
      .finally(() => !gone && setResuming(false));
    return () => void (gone = true);
  }, [key, resuming, begin, end]);
  return resuming;
}
