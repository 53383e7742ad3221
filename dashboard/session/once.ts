/** Secrets that are shown once, by kind. */
import { useCallback } from "react";
import { keyHashOf } from "../../client";
import type { SecretRequest } from "./attempts";
import { useSessions } from "./context";
import { useSecrets, type NewSecret } from "./secrets";

const KINDS = {
  account: {
    title: "Keep your API key",
    about:
      "This key controls your account: anyone who has it can do everything. It is shown once and cannot be recovered.",
    what: "API key",
    fileOf: (label: string) => `${label || "account"}-key.txt`,
  },
  "usage key": {
    title: "Keep this usage key",
    about: "It is shown once. Give it to the program that needs it, and keep your account key to yourself.",
    what: "usage key",
    fileOf: (label: string) => `${label || "usage"}-key.txt`,
  },
  trigger: {
    title: "The hook's secret",
    about: "Give it to the sender. It is shown once.",
    what: "hook secret",
    fileOf: (label: string) => `${label || "hook"}.txt`,
  },
} as const;

type Named = Pick<SecretRequest, "kind" | "label">;

export function secretOf({ kind, label }: Named, secret: string): Omit<NewSecret, "onKept"> {
  const { fileOf, ...shown } = KINDS[kind];
  return { ...shown, secret, file: fileOf(label) };
}

export type Keep = (of: Named, secret: string, warning?: string) => Promise<void>;

/** Shows a secret; resolves once it is stored. The runner can use a usage key from then on. */
export function useKeep(): Keep {
  const { addKey } = useSessions();
  const { show } = useSecrets();
  return useCallback(
    (of, secret, warning) => {
      if (of.kind === "usage key") addKey({ key: secret, hash: keyHashOf(secret), name: of.label });
      return new Promise((resolve) => show({ ...secretOf(of, secret), warning, onKept: resolve }));
    },
    [addKey, show],
  );
}
