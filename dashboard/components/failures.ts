import { ClientError } from "../../client";

/** Sentences for the most common errors; all others show the service's own message. */
const SENTENCES: Readonly<Record<string, string>> = {
  network_failed: "The service could not be reached. Nothing is made twice: try again when the connection is back.",
  client_timed_out: "There was no answer in time. Trying again makes nothing twice.",
  wallet_declined: "You declined in your wallet. Nothing was sent.",
  account_id_taken: "This wallet has made its account already: close this, and connect the wallet to sign in.",
  idempotency_in_progress: "This was asked for already and is still being done. Nothing is done twice: try again soon.",
  insufficient_credit: "There is not enough credit. Nothing was charged: add funds on the Credit page, then try again.",
  unknown_key: "This key is unknown here, or it has been revoked.",
  malformed_key: "This is no API key: a key has 44 characters and ends with =.",
  invalid_argument: "",
  already_ran:
    "The action ran once, and its answer was lost on the way. Nothing ran twice. Activity shows the run; " +
    "press Run to run it again.",
};

/** In Chrome's and Firefox's words, and in Safari's. */
const UNLOADED = /dynamically imported module|Importing a module script failed/;

/** A human-readable error message. */
export function wordsOf(error: unknown): string {
  if (error instanceof ClientError) {
    const { transaction_hash: hash } = error.facts;
    // Something was sent: no sentence may say otherwise, and its owner must be able to look for it.
    return typeof hash === "string" ? `${error.message} Transaction: ${hash}` : SENTENCES[error.code] || error.message;
  }
  if (error instanceof TypeError && UNLOADED.test(error.message))
    return "A part of this page did not load. Check the connection, or load the page again, and try again.";
  if (error instanceof Error && error.message !== "") return error.message;
  return "Something went wrong. Try again.";
}

export const codeOf = (error: unknown): string => (error instanceof ClientError ? error.code : "");
