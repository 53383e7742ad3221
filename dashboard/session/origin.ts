/** The service that this page came from: over http, whoever can read keys could have changed the page as well. */
export const ORIGIN = { baseUrl: location.origin, insecure: true } as const;
