/**
 * What an operator says once for a data folder and every owner of it needs again: which folder a mount is, which private
 * hosts are open, whose certificates are trusted, where a secret comes from. `approve` and `serve` take it as options and
 * keep it in `settings.json`; secrets stand there as references (`env:NAME`), never as values.
 *
 * Kept true: the file is read whole and strictly; a key that is not known is a mistake, not a remark. It is replaced as a
 * whole, so that a reader finds the old or the new one.
 */

import { renameSync, statSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { createFetchFunction, HostFunctionError } from "@flowcell/host";
import { didYouMean } from "@flowcell/protocol";
import * as z from "zod/mini";
import { FileProblem, readBounded } from "../cli/read-file.js";
import { UsageError } from "../cli/usage.js";
import { errorCode } from "./data-folder.js";
import { ConfigurationError } from "./failures.js";

/** As manifests name mounts and secrets. */
const names = /^[a-z0-9_-]{1,63}$/;
const environmentReference = /^env:[A-Za-z_][A-Za-z0-9_]{0,127}$/;

/** An empty store has its tables, and one run should have room. */
const storeBytesLeast = 1024 * 1024;

const schema = z.strictObject({
  format: z.literal(1),
  mounts: z.record(z.string().check(z.regex(names)), z.string().check(z.startsWith("/"))),
  privateHosts: z.array(z.string().check(z.minLength(1), z.maxLength(260))),
  caFile: z.nullable(z.string().check(z.startsWith("/"))),
  secrets: z.record(
    z.string().check(z.regex(names)),
    z.string().check(z.regex(environmentReference, "must be env:NAME")),
  ),
  /** Above this the oldest finished runs go; written by hand. */
  storeBytes: z.optional(
    z.number().check(z.int(), z.minimum(storeBytesLeast, `must be at least ${storeBytesLeast}`)),
  ),
});

export type Settings = Readonly<z.infer<typeof schema>>;

export const noSettings: Settings = Object.freeze({
  format: 1,
  mounts: {},
  privateHosts: [],
  caFile: null,
  secrets: {},
});

const bytesMax = 256 * 1024;
/** A system's whole list of authorities has a quarter of a megabyte. */
const pemBytesMax = 8 * 1024 * 1024;

/** What the file says; nothing when there is none. */
export function readSettings(path: string): Settings {
  try {
    return parse(path, readText(path, bytesMax));
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    if (error.kind === "missing") return noSettings;
    throw new ConfigurationError(`${path}: ${error.message}`);
  }
}

function readText(path: string, most: number): string {
  return Buffer.from(readBounded(path, { bytesMax: most, pipes: false })).toString("utf8");
}

function parse(path: string, text: string): Settings {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new ConfigurationError(`${path}: is not JSON (${error instanceof Error ? error.message : ""})`);
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  if (issue?.code === "unrecognized_keys") {
    const key = issue.keys[0] ?? "";
    const near = didYouMean(key, [...Object.keys(noSettings), "storeBytes"]);
    throw new ConfigurationError(
      `${path}: unknown key ${JSON.stringify(key)}${near === undefined ? "" : `; did you mean ${near}?`}`,
    );
  }
  const where = issue?.path.map(String).join(".") ?? "";
  throw new ConfigurationError(
    `${path}: ${where === "" ? "" : `${where}: `}${issue?.message ?? "is refused"}`,
  );
}

export function writeSettings(path: string, settings: Settings): void {
  const next = `${path}.${process.pid}.new`;
  writeFileSync(next, `${JSON.stringify(settings, null, 2)}\n`, { mode: 0o600 });
  renameSync(next, path);
}

/** As they are typed: `name=DIR`, `HOST[:PORT]`, `NAME=env:VAR`, a file. */
export interface SettingOptions {
  readonly mount: readonly string[];
  readonly allowNet: readonly string[];
  readonly secret: readonly string[];
  readonly caFile: string | undefined;
}

export function hasOptions({ mount, allowNet, secret, caFile }: SettingOptions): boolean {
  return mount.length + allowNet.length + secret.length > 0 || caFile !== undefined;
}

/** The settings with what was typed added; a name that is there gets the new meaning. */
export function withOptions(settings: Settings, options: SettingOptions): Settings {
  const mounts = each("--mount", options.mount, mountOption);
  const secrets = each("--secret", options.secret, secretOption);
  return {
    ...settings,
    mounts: { ...settings.mounts, ...Object.fromEntries(mounts) },
    privateHosts: [...new Set([...settings.privateHosts, ...options.allowNet.map(hostOption)])],
    caFile: options.caFile === undefined ? settings.caFile : caFileOption(options.caFile),
    secrets: { ...settings.secrets, ...Object.fromEntries(secrets) },
  };
}

/** What was typed, name by name: a name that is given twice is a mistake, whichever was meant. */
function each(
  option: string,
  texts: readonly string[],
  read: (text: string) => [string, string],
): readonly [string, string][] {
  const pairs = texts.map(read);
  const given = pairs.map(([name]) => name);
  const twice = given.find((name, index) => given.indexOf(name) !== index);
  if (twice === undefined) return pairs;
  throw new UsageError("request", `${option} ${twice}=… is given twice; give it once`);
}

function pair(option: string, text: string, example: string): [string, string] {
  const equals = text.indexOf("=");
  const name = text.slice(0, Math.max(0, equals));
  if (equals < 1 || equals === text.length - 1 || !names.test(name)) {
    throw new UsageError("request", `${option} ${JSON.stringify(text)}: write ${example}`);
  }
  return [name, text.slice(equals + 1)];
}

export function mountOption(text: string): [string, string] {
  const [name, folder] = pair("--mount", text, "name=FOLDER, for example reports=./out");
  const path = resolve(folder);
  let isFolder: boolean;
  try {
    isFolder = statSync(path).isDirectory();
  } catch (error) {
    const code = errorCode(error);
    const what = code === "ENOENT" ? "no such folder" : code;
    throw new UsageError("request", `--mount ${text}: ${what}`);
  }
  if (!isFolder) throw new UsageError("request", `--mount ${text}: is no folder`);
  return [name, path];
}

export function secretOption(text: string): [string, string] {
  const [name, reference] = pair("--secret", text, "name=env:VARIABLE, for example api-token=env:API_TOKEN");
  if (environmentReference.test(reference)) return [name, reference];
  // The text may be the secret itself: it is not repeated.
  throw new UsageError(
    "request",
    `--secret ${name}=…: secrets are not typed on a command line; put the value into an environment variable and write ${name}=env:VARIABLE`,
  );
}

/** Refused here as the function that opens hosts would refuse it later, when it is too late to say no. */
function hostOption(text: string): string {
  try {
    createFetchFunction({ rules: [], secrets: [], secretValue: () => undefined, privateHosts: [text] });
    return text;
  } catch (error) {
    if (!(error instanceof HostFunctionError)) throw error;
    throw new UsageError(
      "request",
      `--allow-net ${JSON.stringify(text)}: write a host, or host:port, without http://, for example 127.0.0.1:8080`,
    );
  }
}

function caFileOption(file: string): string {
  const path = resolve(file);
  readPem(path);
  return path;
}

/** Certificates, PEM. */
export function readPem(path: string): string {
  let text: string;
  try {
    text = readText(path, pemBytesMax);
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    throw new ConfigurationError(`certificate file ${path}: ${error.message}`);
  }
  if (text.includes("-----BEGIN CERTIFICATE-----")) return text;
  throw new ConfigurationError(`certificate file ${path}: holds no PEM certificate`);
}

/** Where the value of a secret is now; asked at each use, so that a rotated one is found. */
export function secretLookup(
  settings: Settings,
  environment: NodeJS.ProcessEnv,
): (name: string) => string | undefined {
  return (name) => {
    const reference = Object.hasOwn(settings.secrets, name) ? settings.secrets[name] : undefined;
    const value = reference === undefined ? undefined : environment[reference.slice("env:".length)];
    return value === "" ? undefined : value;
  };
}
