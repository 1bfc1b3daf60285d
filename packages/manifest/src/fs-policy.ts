/**
 * Precedence of file rules: pure. The host functions for files enforce it on handles; this module says what a set of
 * rules amounts to and which rules hold for a path as it is written.
 *
 * Trust: rules come from a manifest that passed the schema; a path comes from a script.
 * Kept true: deny beats protect beats write beats read, in whatever order the rules stand and however deep their roots
 * are. `deny` and `protect` only take away: a rule of access "protect" alone makes nothing readable.
 *
 * A path as written is not where a file is: links, case-folding file systems and second names of one file lead elsewhere.
 * So `rulesAt` is for previews, messages and the cheap first refusal. What decides is `strongestAccess` over the rules
 * whose roots were met, by device and inode, on the way to the opened handle.
 */

import type { FsAccess, FsRule } from "./grant-types.js";

/** What a set of rules amounts to. `read` and `write` are final; the other two say why something is missing. */
export interface FsDecision {
  readonly read: boolean;
  readonly write: boolean;
  readonly denied: boolean;
  readonly protected: boolean;
}

export function strongestAccess(kinds: Iterable<FsAccess>): FsDecision {
  const held = new Set(kinds);
  const denied = held.has("deny");
  const isProtected = held.has("protect");
  return {
    read: !denied && (held.has("read") || held.has("write")),
    write: !denied && !isProtected && held.has("write"),
    denied,
    protected: isProtected,
  };
}

/**
 * The rules whose root is the path or a directory above it, compared component by component: "logs" holds for "logs/a"
 * and not for "logs-old". `path` is relative to the mount, "" for the mount itself. No rule holds for a path that is not
 * in normal form (absolute, empty or dotted components, a zero byte): nothing is granted there.
 */
export function rulesAt(rules: readonly FsRule[], mount: string, path: string): readonly FsRule[] {
  const components = pathComponents(path);
  if (components === undefined) return [];
  return rules.filter((rule) => {
    if (rule.mount !== mount) return false;
    const root = pathComponents(rule.path ?? "");
    // A rule that did not pass the schema: it must not be dropped, it could be a denial.
    if (root === undefined) throw new RangeError(`${JSON.stringify(rule.path)} is no path inside a mount`);
    return root.length <= components.length && root.every((name, index) => name === components[index]);
  });
}

/** The names of the mounts that rules speak of, each once, sorted: what the operator must map to folders. */
export function mountsOf(rules: readonly FsRule[]): readonly string[] {
  return [...new Set(rules.map((rule) => rule.mount))].sort();
}

/** The components of a relative POSIX path in normal form, none for "", undefined for any other text. */
export function pathComponents(path: string): readonly string[] | undefined {
  if (path === "") return [];
  if (path.includes("\0")) return undefined;
  const components = path.split("/");
  return components.some((name) => name === "" || name === "." || name === "..") ? undefined : components;
}
