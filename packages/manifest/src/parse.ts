/**
 * From the bytes of `flow.json` to a Manifest, or to everything that is wrong with them. Called by the CLI, the service and
 * the catalog; a manifest that was approved is read again by the same function.
 *
 * TRUST: the text is a flow author's, which may be a program that wants more than it says. After this a Manifest is whole:
 * types, bounds, spellings and the combinations below were checked. What it grants is not thereby given: an approval does.
 */

import { limitNames } from "@flowcell/protocol";
import { findingsOf } from "./issues.js";
import { parseDocument, problemsMax } from "./json-document.js";
import type { Manifest } from "./manifest-types.js";
import type { Finding, ManifestProblem } from "./problem.js";
import { manifestSchema } from "./schema.js";

export interface ParseManifestOptions {
  /** The file's name in problems; "flow.json" when absent. */
  readonly label?: string;
  /** What is wrong with a cron expression, or null. Without it, expressions are taken as they are. */
  readonly checkCron?: (expression: string, timeZone: string) => string | null;
}

export type ManifestResult =
  | { readonly ok: true; readonly manifest: Manifest }
  | { readonly ok: false; readonly problems: readonly ManifestProblem[] };

export function parseManifest(text: string | Uint8Array, options: ParseManifestOptions = {}): ManifestResult {
  const read = parseDocument(text, options.label ?? "flow.json");
  if (!read.ok) return read;
  const { value, place } = read.document;
  const parsed = manifestSchema.safeParse(value);
  const refuse = (findings: readonly Finding[]): ManifestResult => {
    const problems = findings.slice(0, problemsMax).map(place);
    return { ok: false, problems: problems.sort((a, b) => a.line - b.line || a.column - b.column) };
  };
  if (!parsed.success) return refuse(parsed.error.issues.flatMap((issue) => findingsOf(issue, value)));
  const { $schema: _, ...fields } = parsed.data;
  // A field that is absent has no undefined in its place: the schema library leaves keys out that the text left out.
  const manifest = fields as Manifest;
  const findings = [...combinations(manifest), ...cronProblems(manifest, options)];
  if (findings.length > 0) return refuse(findings);
  return { ok: true, manifest: deepFreeze(manifest) };
}

/**
 * The manifest with every default filled in, as text that parseManifest reads back to the same manifest. Equal for texts
 * that differ only in comments, spacing, defaults and the order of fields; schemas and lists keep their order, which means
 * something to forms and to network rules.
 */
export function manifestJson(manifest: Manifest): string {
  const budgets = Object.fromEntries(
    limitNames.flatMap((name) => {
      const value = manifest.budgets[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
  return JSON.stringify({ ...manifest, budgets }, null, 2);
}

/** What no single field can know. */
function combinations(manifest: Manifest): Finding[] {
  const findings: Finding[] = [];
  const { fs, net, secrets } = manifest.grants;
  fs.forEach((rule, index) => {
    if (rule.access === "read" || rule.access === "write") return;
    const opened = fs.some((other) => other.mount === rule.mount && /^(?:read|write)$/.test(other.access));
    if (opened) return;
    const message = `only takes away, and nothing grants read or write in the mount "${rule.mount}"; add a rule or remove this one`;
    findings.push({ path: ["grants", "fs", index, "access"], message });
  });
  secrets.forEach((secret, index) => {
    const first = secrets.findIndex((other) => other.name === secret.name);
    if (first !== index) {
      const message = `the secret "${secret.name}" is granted twice (entry ${first}); put the hosts together`;
      findings.push({ path: ["grants", "secrets", index, "name"], message });
    }
    if (net.length === 0) {
      const message = "goes into requests, and grants.net allows none; add the hosts to grants.net";
      findings.push({ path: ["grants", "secrets", index], message });
    }
  });
  return findings;
}

function cronProblems(manifest: Manifest, options: ParseManifestOptions): Finding[] {
  const { trigger } = manifest;
  if (trigger.kind !== "cron" || options.checkCron === undefined) return [];
  const problem = options.checkCron(trigger.expression, trigger.timeZone);
  return problem === null ? [] : [{ path: ["trigger", "expression"], message: problem }];
}

function deepFreeze<Value extends object>(value: Value): Value {
  for (const inner of Object.values(value)) {
    if (typeof inner === "object" && inner !== null) deepFreeze(inner);
  }
  return Object.freeze(value);
}
