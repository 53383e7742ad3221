import { useState, type ReactNode } from "react";
import { Button } from "./Button";
import { CopyButton } from "./elements";
import { Check } from "./Field";
import { saveFile } from "./saveFile";

interface Props {
  readonly secret: string;
  /** The secret's name in labels: "API key". */
  readonly what: string;
  /** The file name for saving it. */
  readonly file: string;
  readonly onKept: () => void | Promise<void>;
}

/** A secret that is shown once: continuing requires confirming that it is stored. */
export function SecretOnce({ secret, what, file, onKept }: Props): ReactNode {
  const [kept, setKept] = useState(false);
  return (
    <>
      <div className="secret">
        <output className="code" aria-label={`New ${what}`}>
          {secret}
        </output>
        <CopyButton text={secret} what={what} />
      </div>
      <div className="row">
        <Button onPress={() => saveFile(file.replace(/[^\w.-]+/g, "-"), `${secret}\n`)}>Download</Button>
      </div>
      <Check label="I have stored this key" checked={kept} onChange={setKept} />
      <div className="dialog-foot">
        <Button variant="primary" disabled={!kept} onPress={onKept}>
          Continue
        </Button>
      </div>
    </>
  );
}
