/** The application configuration of the simulated guest: one compose file, its images pinned by digest. */
import { createHash } from "node:crypto";

const simulated = (name: string): string =>
  `sha256:${createHash("sha256").update(`simulated image ${name}`).digest("hex")}`;

/** `digestOf` gives an image's digest by the service's name. */
export function defaultAppCompose(digestOf: (name: string) => string = simulated): string {
  const images = ["ingress", "relayer", "executor"].map(
    (name) => `  ${name}:\n    image: registry.invalid/simulated/${name}@${digestOf(name)}\n`,
  );
  return JSON.stringify({
    manifest_version: 2,
    name: "simulated",
    runner: "docker-compose",
    docker_compose_file: `services:\n${images.join("")}`,
    kms_enabled: true,
    gateway_enabled: true,
    public_logs: false,
    public_sysinfo: true,
    allowed_envs: [],
    no_instance_id: false,
    secure_time: true,
  });
}
