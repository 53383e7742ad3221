import { useState, type ReactNode } from "react";
import { CodeBlock } from "../../components/elements";
import { Choices } from "../../components/Field";
import { curlOf, pythonOf, sdkOf, type Snippet } from "./snippets";

const WAYS = [
  ["curl", "curl"],
  ["sdk", "TypeScript"],
  ["python", "Python"],
] as const;
type Way = (typeof WAYS)[number][0];

const TEXTS = { curl: curlOf, sdk: sdkOf, python: pythonOf } as const;
const LABELS = { curl: "curl command", sdk: "SDK code", python: "Python code" } as const;

export function OtherClients({
  open = false,
  ...run
}: Omit<Snippet, "origin"> & { readonly open?: boolean }): ReactNode {
  const [way, setWay] = useState<Way>("curl");
  return (
    <details open={open}>
      <summary>The same run from your program</summary>
      <div className="stack more">
        <Choices legend="With" value={way} options={WAYS} onChange={setWay} />
        <CodeBlock what={LABELS[way]} text={TEXTS[way]({ ...run, origin: location.origin })} />
      </div>
    </details>
  );
}
