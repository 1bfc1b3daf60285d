/**
 * Welcome: the facts that a worker attests about its own confinement before it reads anything. The field table is the one
 * declaration: the C struct, the C writer of the JSON header (worker-native/generated/) and the strict parser here come
 * from it. What each fact must be is the plan's to say (packages/sandbox); this file says only what a fact looks like.
 *
 * TRUST: `parseWelcome` establishes that every field is there once, no other is, and each has its type and range.
 * It does not establish that the worker told the truth.
 */

import { ProtocolError } from "./protocol-error.js";
import { type Untrusted, verify } from "./untrusted.js";

export const protocolVersion = 1;

export type WelcomeFieldKind =
  /** `protocolVersion`. */
  | "protocol"
  /** Lower-case hexadecimal of 32 bytes. */
  | "sha256"
  /** The same, and text already in C. */
  | "sha256Text"
  /** Lower-case hexadecimal of a 64-bit set, 16 digits. */
  | "bits64"
  | "boolean"
  /** 0 … 2^32 - 1 */
  | "uint32"
  /** A whole number, or -1 for "no limit" (2^64 - 1 in C). */
  | "limit"
  /** A bit per descriptor, as a number. */
  | "mask"
  | "os"
  | "arch";

export interface WelcomeField {
  readonly name: string;
  readonly kind: WelcomeFieldKind;
  readonly meaning: string;
}

export const osNames = ["linux"] as const;
export const archNames = ["x64", "arm64"] as const;

export const welcomeFields = [
  { name: "protocol", kind: "protocol", meaning: "version of the wire" },
  { name: "buildId", kind: "sha256Text", meaning: "identity of the worker binary's sources" },
  { name: "fingerprint", kind: "sha256Text", meaning: "replay fingerprint: engine, prelude, codec" },
  { name: "os", kind: "os", meaning: "operating system" },
  { name: "arch", kind: "arch", meaning: "processor architecture" },
  { name: "seccompSha256", kind: "sha256", meaning: "hash of the installed filter program" },
  { name: "seccompLength", kind: "uint32", meaning: "instructions of the filter program" },
  { name: "seccompTsync", kind: "boolean", meaning: "the filter was installed for every thread" },
  { name: "landlockAbi", kind: "uint32", meaning: "ABI that the ruleset was made for, 0 = no Landlock" },
  { name: "noNewPrivs", kind: "boolean", meaning: "no_new_privs, read back" },
  { name: "dumpable", kind: "boolean", meaning: "dumpable, read back" },
  { name: "mdwe", kind: "boolean", meaning: "memory-deny-write-execute is on" },
  { name: "threads", kind: "uint32", meaning: "threads of the process" },
  { name: "uid", kind: "uint32", meaning: "user, real = effective = saved" },
  { name: "gid", kind: "uint32", meaning: "group, real = effective = saved" },
  { name: "groups", kind: "uint32", meaning: "number of supplementary groups" },
  { name: "capEffective", kind: "bits64", meaning: "effective capabilities" },
  { name: "capPermitted", kind: "bits64", meaning: "permitted capabilities" },
  { name: "capInheritable", kind: "bits64", meaning: "inheritable capabilities" },
  { name: "capAmbient", kind: "bits64", meaning: "ambient capabilities" },
  { name: "limitCore", kind: "limit", meaning: "RLIMIT_CORE" },
  { name: "limitData", kind: "limit", meaning: "RLIMIT_DATA" },
  { name: "limitCpu", kind: "limit", meaning: "RLIMIT_CPU, seconds" },
  { name: "limitStack", kind: "limit", meaning: "RLIMIT_STACK" },
  { name: "limitNofile", kind: "limit", meaning: "RLIMIT_NOFILE" },
  { name: "limitFsize", kind: "limit", meaning: "RLIMIT_FSIZE" },
  { name: "limitNproc", kind: "limit", meaning: "RLIMIT_NPROC" },
  { name: "descriptors", kind: "mask", meaning: "open descriptors, a bit each; 7 = 0, 1 and 2 alone" },
  { name: "environmentCount", kind: "uint32", meaning: "environment variables" },
  {
    name: "specStoreBypass",
    kind: "uint32",
    meaning: "speculation control of store bypass as prctl returns it, 0 = not there",
  },
  {
    name: "specIndirectBranch",
    kind: "uint32",
    meaning: "speculation control of indirect branches, likewise",
  },
] as const satisfies readonly WelcomeField[];

interface KindTypes {
  readonly protocol: number;
  readonly sha256: string;
  readonly sha256Text: string;
  readonly bits64: string;
  readonly boolean: boolean;
  readonly uint32: number;
  readonly limit: number;
  readonly mask: number;
  readonly os: (typeof osNames)[number];
  readonly arch: (typeof archNames)[number];
}

type WelcomeFieldRow = (typeof welcomeFields)[number];
export type WelcomeFieldName = WelcomeFieldRow["name"];
export type WelcomeFacts = {
  readonly [row in WelcomeFieldRow as row["name"]]: KindTypes[row["kind"]];
};

const kindChecks: { readonly [kind in WelcomeFieldKind]: (value: unknown) => boolean } = {
  // Another version is a fact to be judged and named, not garbage.
  protocol: (value) => isWhole(value, 0, 0xffff_ffff),
  sha256: isSha256,
  sha256Text: isSha256,
  bits64: (value) => typeof value === "string" && /^[0-9a-f]{16}$/.test(value),
  boolean: (value) => typeof value === "boolean",
  uint32: (value) => isWhole(value, 0, 0xffff_ffff),
  limit: (value) => isWhole(value, -1, Number.MAX_SAFE_INTEGER),
  mask: (value) => isWhole(value, 0, Number.MAX_SAFE_INTEGER),
  os: (value) => (osNames as readonly unknown[]).includes(value), // widened to compare with anything
  arch: (value) => (archNames as readonly unknown[]).includes(value), // likewise
};

function isSha256(value: unknown): boolean {
  return typeof value === "string" && /^[0-9a-f]{64}$/.test(value);
}

function isWhole(value: unknown, least: number, most: number): boolean {
  return (
    typeof value === "number" &&
    Number.isInteger(value) &&
    !Object.is(value, -0) &&
    value >= least &&
    value <= most
  );
}

/** Whether a value may stand in a field: what the parser demands, for tests that change single facts. */
export function isWelcomeFact(kind: WelcomeFieldKind, value: unknown): boolean {
  return kindChecks[kind](value);
}

/** The header of a Welcome frame as facts; throws ProtocolError `bad_header` with the field's name. */
export function parseWelcome(header: Untrusted<string>): WelcomeFacts {
  // TRUST: see the head comment for what this establishes.
  return verify(header, (text) => {
    let parsed: unknown;
    try {
      parsed = JSON.parse(text);
    } catch {
      throw new ProtocolError("bad_header", "Welcome is not JSON");
    }
    if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
      throw new ProtocolError("bad_header", "Welcome is not an object");
    }
    const facts = parsed as Record<string, unknown>; // a JSON object: own data properties only
    for (const { name, kind } of welcomeFields) {
      if (!Object.hasOwn(facts, name)) throw new ProtocolError("bad_header", `Welcome lacks ${name}`);
      if (!kindChecks[kind](facts[name])) throw new ProtocolError("bad_header", `Welcome.${name}`);
    }
    if (Object.keys(facts).length !== welcomeFields.length) {
      throw new ProtocolError("bad_header", "Welcome has a field that no row declares");
    }
    return facts as unknown as WelcomeFacts; // every row was checked above
  });
}

/** The header as the worker writes it: fields in table order, no spaces. */
export function welcomeHeader(facts: WelcomeFacts): string {
  return JSON.stringify(Object.fromEntries(welcomeFields.map(({ name }) => [name, facts[name]])));
}
