/** An OCI image layout: one folder that the usual tools read (skopeo, umoci, buildah, docker load after a copy). */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { digestOf, type Layer } from "./layer";

const MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json";
const CONFIG_TYPE = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip";
const CREATED = "1970-01-01T00:00:00Z";

export interface ImageSettings {
  readonly user: string;
  readonly env: readonly string[];
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  readonly ports: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

export interface WrittenImage {
  /** The digest by which a compose file names the image. */
  readonly digest: string;
  /** Of all layers, compressed. */
  readonly bytes: number;
}

export async function writeLayout(
  folder: string,
  settings: ImageSettings,
  layers: readonly Layer[],
): Promise<WrittenImage> {
  await mkdir(join(folder, "blobs", "sha256"), { recursive: true });
  const write = async (bytes: Buffer): Promise<{ digest: string; size: number }> => {
    const digest = digestOf(bytes);
    await writeFile(join(folder, "blobs", "sha256", digest.slice("sha256:".length)), bytes);
    return { digest, size: bytes.length };
  };
  const config = await write(json(configOf(settings, layers)));
  const written = [];
  for (const { bytes } of layers) written.push({ mediaType: LAYER_TYPE, ...(await write(bytes)) });
  const manifest = await write(
    json({
      schemaVersion: 2,
      mediaType: MANIFEST_TYPE,
      config: { mediaType: CONFIG_TYPE, ...config },
      layers: written,
    }),
  );
  const annotations = { "org.opencontainers.image.ref.name": "latest" };
  await writeFile(
    join(folder, "index.json"),
    json({ schemaVersion: 2, manifests: [{ mediaType: MANIFEST_TYPE, ...manifest, annotations }] }),
  );
  await writeFile(join(folder, "oci-layout"), json({ imageLayoutVersion: "1.0.0" }));
  return { digest: manifest.digest, bytes: layers.reduce((sum, { bytes }) => sum + bytes.length, 0) };
}

function configOf({ user, env, entrypoint, cmd, ports, labels }: ImageSettings, layers: readonly Layer[]): object {
  return {
    created: CREATED,
    architecture: "amd64",
    os: "linux",
    config: {
      User: user,
      Env: env,
      Entrypoint: entrypoint,
      Cmd: cmd,
      WorkingDir: "/app",
      Labels: labels,
      ...(ports.length === 0 ? {} : { ExposedPorts: Object.fromEntries(ports.map((port) => [`${port}/tcp`, {}])) }),
    },
    rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(() => ({ created: CREATED, created_by: "npm run image" })),
  };
}

const json = (value: object): Buffer => Buffer.from(JSON.stringify(value));
