/** The Stripe double as its own process: `node dist/scripts/dev/stripe/main.js`. */
import { startStripeDouble } from "./server";

async function main(): Promise<void> {
  const { PORT = "12111", WEBHOOK_URL, WEBHOOK_SECRET = "whsec_development" } = process.env;
  const double = await startStripeDouble({
    port: Number(PORT),
    webhookUrl: WEBHOOK_URL,
    webhookSecret: WEBHOOK_SECRET,
  });
  console.log(`Stripe double at ${double.url}`);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void double.stop());
}

void main();
