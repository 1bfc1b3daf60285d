/**
 * What a manifest grants, as the rest of flowcell reads it. Types only: the schema (schema.ts) makes values of them, the
 * evaluators (fs-policy.ts, net-policy.ts) decide by them, host functions enforce the decision.
 */

/** `deny` beats `protect` (never writable) beats `write` (implies read) beats `read`; what no rule makes readable is out of reach. */
export type FsAccess = "read" | "write" | "protect" | "deny";

export interface FsRule {
  /** A name that the operator maps to a folder; scripts see `/<mount>/…`. */
  readonly mount: string;
  /** POSIX path inside the mount, without `.` or `..`; the whole mount when absent. Holds for everything below it. */
  readonly path?: string;
  readonly access: FsAccess;
}

export interface NetRule {
  /** `*`, `*.x` (exactly one label), `**.x` (x and any depth), a name, or an IP literal. Never a URL. */
  readonly host: string;
  /** Any port when absent. */
  readonly port?: number;
  /** When absent: GET and HEAD for a rule that allows, every method for one that denies. */
  readonly methods?: readonly string[];
  /** `allow` when absent. The first rule that matches decides; without one the request is denied. */
  readonly action?: "allow" | "deny";
  /** Said to the script when this rule denies. */
  readonly reason?: string;
}

export interface SecretGrant {
  readonly name: string;
  /** Patterns as in NetRule; the secret goes to these hosts over HTTPS only. */
  readonly hosts: readonly string[];
  /** The one header that it may stand in. */
  readonly header: string;
  /** Put before the value with a space between, for example "Bearer". */
  readonly scheme?: string;
}

export interface Grants {
  readonly fs: readonly FsRule[];
  readonly net: readonly NetRule[];
  readonly secrets: readonly SecretGrant[];
  readonly kv: { readonly maxBytes: number } | null;
  /** Patterns of tool names. */
  readonly tools: readonly string[];
  /** Ids of flows that it may start. */
  readonly flows: readonly string[];
  /** Names of events that it may emit. */
  readonly events: readonly string[];
}
