import { ClientError } from "../../client";

/** Sentences for what people meet most; everything else speaks for itself in the service's own words. */
const SENTENCES: Readonly<Record<string, string>> = {
  network_failed: "The service could not be reached. Nothing is done twice: try again when the connection is back.",
  client_timed_out: "There was no answer in time. Trying again does nothing twice.",
  wallet_declined: "You declined in your wallet. Nothing was sent.",
  unknown_key: "This key is unknown here, or it has been revoked.",
  malformed_key: "This is no API key: a key has 44 characters and ends with =.",
  invalid_argument: "",
};

/** A failure in words for whoever is in front of the page. */
export function wordsOf(error: unknown): string {
  if (error instanceof ClientError) return SENTENCES[error.code] || error.message;
  if (error instanceof Error && error.message !== "") return error.message;
  return "Something went wrong. Try again.";
}

export const codeOf = (error: unknown): string => (error instanceof ClientError ? error.code : "");
