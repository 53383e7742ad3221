/** The TLS ingress process: reads the configuration, gets a certificate, serves, and stops on SIGTERM and SIGINT. */
import { createLogger } from "../protocol/log";
import { readConfig, type Config } from "./config";
import { startIngress } from "./ingress";

function configOrExit(): Config {
  try {
    return readConfig();
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(2);
  }
}

async function main(): Promise<void> {
  const config = configOrExit();
  const log = createLogger(config.LOG_LEVEL, "ingress");
  const ingress = await startIngress(config, log);
  log.info({ domain: config.DOMAIN, https: ingress.httpsPort, http: ingress.httpPort }, "ingress ready");
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.once(signal, () => void ingress.stop().then(() => process.exit(0)));
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
