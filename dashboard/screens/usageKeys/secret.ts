import type { NewSecret } from "../../session/secrets";

export const usageKeySecret = (name: string, secret: string): Omit<NewSecret, "onKept"> => ({
  title: "Keep this usage key",
  about: "It is shown once. Give it to the program that needs it, and keep your account key to yourself.",
  secret,
  what: "usage key",
  file: `${name || "usage"}-key.txt`,
});
