/** The keyholder process: reads the configuration, starts the service, stops it cleanly on SIGTERM and SIGINT. */
import { ConfigError, readConfig, readRootConfig, type Config, type RootConfig } from "./config";
import { createLogger } from "../protocol/log";
import { startWithoutContract } from "./root";
import { startService } from "./service";
import { startWatchdog } from "./liveness/watchdog";
import { closePassedOn } from "./confinement/inherited";
import { protectOwnMemory } from "./confinement/keyholder";

/**
 * Time for the shutdown after the drain; then the process exits anyway. Children exit by themselves when it is gone.
 */
const AFTER_DRAIN_MS = 1_500;
/** The sandbox's native module and memory limits need this release line of Node or a later one. */
const OLDEST_NODE_LINE = 24;

async function main(): Promise<void> {
  if (Number(process.versions.node.split(".")[0]) < OLDEST_NODE_LINE)
    exitWith(`The executor runs on Node ${OLDEST_NODE_LINE}; this is ${process.version}.`);
  closePassedOn();
  const missingProtections = protectOwnMemory();
  const config = configOrExit();
  const logger = createLogger(config.LOG_LEVEL, "keyholder");
  for (const event of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(event, (error: unknown) => {
      logger.fatal({ err: error }, event);
      process.exit(1);
    });
  }
  // SIGUSR1 would start Node's debugger, which could read the root key; a listener replaces that.
  process.on("SIGUSR1", () => logger.warn("SIGUSR1 is ignored: this process allows no debugger"));
  startWatchdog();
  const stopped = stopOnSignal();
  const hasContract = "contractAddress" in config;
  const service = hasContract ? startService(config, logger, missingProtections) : startWithoutContract(config, logger);
  const readyOrStopped = service.started.then(() => {
    const { EXECUTOR_SOCKET: socket, TEE: tee } = config;
    const network = hasContract ? { chainId: config.chainId.toString(), contract: config.contractAddress } : {};
    logger.info({ socket, ...network, tee }, hasContract ? "executor ready" : "executor without a contract");
    return stopped;
  });
  try {
    logger.info({ signal: await Promise.race([readyOrStopped, stopped]) }, "stopping");
    setTimeout(() => process.exit(1), (hasContract ? config.drainMs : 0) + AFTER_DRAIN_MS).unref();
    await service.stop();
    logger.info("stopped");
    process.exit(0);
  } catch (error) {
    logger.fatal({ err: error }, error instanceof Error ? error.message : "the executor cannot start");
    process.exit(1);
  }
}

function configOrExit(): Config | RootConfig {
  try {
    return readRootConfig() ?? readConfig();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return exitWith(error.message);
  }
}

function exitWith(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}

/** Resolves at the first signal; a second one exits at once. */
function stopOnSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let seen = false;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (seen) process.exit(1);
      seen = true;
      resolve(signal);
    };
    process.on("SIGTERM", onSignal);
    process.on("SIGINT", onSignal);
  });
}

void main();
