/**
 * Decides whether a request is within the granted network rules: pure, called before every request and again before
 * every redirect. Name resolution, addresses and what is sent are the caller's to check.
 *
 * Trust: rules come from a manifest that passed the schema; host, port and method come from a script.
 * Kept true: rules are read in order, the first that matches decides, and what no rule matches is denied. A rule matches
 * when its host, its port (any when absent) and its methods match:
 * - an allowing rule without methods is for GET and HEAD only;
 * - a denying rule without methods is for every method: whoever closes a host means the whole host;
 * - a rule that names other methods or another port does not match, whatever its action, and the next one is asked. So
 *   `{host: "a", methods: ["GET"]}` followed by `{host: "a", methods: ["POST"], action: "deny"}` reads as it stands.
 * Methods are compared without regard to ASCII case, because servers differ in whether `patch` is `PATCH`.
 */

import type { NetRule } from "./grant-types.js";
import { hostMatches, parseHost } from "./host-pattern.js";

/** Where a request goes. `host` as in a URL, with or without brackets around IPv6; `port` is the effective one. */
export interface NetTarget {
  readonly host: string;
  readonly port: number;
  readonly method: string;
}

export type NetDecision =
  | { readonly allowed: true; readonly rule: NetRule }
  /** `rule` is the one that denied, null when none matched. `reason` is for the script: it holds nothing secret. */
  | { readonly allowed: false; readonly rule: NetRule | null; readonly reason: string };

/** What an allowing rule without `methods` is for. */
export const defaultMethods: readonly string[] = Object.freeze(["GET", "HEAD"]);

/** Throws a RangeError when a rule's host is no pattern; see hostMatches. */
export function evaluateNet(rules: readonly NetRule[], target: NetTarget): NetDecision {
  const what = describeTarget(target);
  if (parseHost(target.host) === undefined) {
    const reason = `${what} is denied: this is neither a host name nor an IP address in its usual form`;
    return { allowed: false, rule: null, reason };
  }
  if (!Number.isInteger(target.port) || target.port < 1 || target.port > 65_535) {
    return { allowed: false, rule: null, reason: `${what} is denied: ports are 1 to 65535` };
  }
  for (const [index, rule] of rules.entries()) {
    if (!hostMatches(rule.host, target.host)) continue;
    if (!portMatches(rule, target) || !methodMatches(rule, target)) continue;
    if (rule.action !== "deny") return { allowed: true, rule };
    const reason = rule.reason ?? `${what} is denied by grants.net[${index}] (host "${rule.host}")`;
    return { allowed: false, rule, reason };
  }
  return { allowed: false, rule: null, reason: `${what} is not granted: ${missingGrant(rules, target)}` };
}

function portMatches(rule: NetRule, target: NetTarget): boolean {
  return rule.port === undefined || rule.port === target.port;
}

function methodMatches(rule: NetRule, target: NetTarget): boolean {
  const methods = rule.methods ?? (rule.action === "deny" ? undefined : defaultMethods);
  if (methods === undefined) return true;
  const asked = target.method.toUpperCase();
  return methods.some((method) => method.toUpperCase() === asked);
}

/** What to add, and which rule came close: a rule for the host that names other methods or another port. */
function missingGrant(rules: readonly NetRule[], target: NetTarget): string {
  const method = target.method.toUpperCase();
  const grant: Record<string, unknown> = { host: parseHost(target.host)?.text };
  if (!defaultMethods.includes(method)) grant["methods"] = [clip(method, 32)];
  const add = `add ${JSON.stringify(grant)} to grants.net of the manifest`;
  const near = rules.findIndex((rule) => rule.action !== "deny" && hostMatches(rule.host, target.host));
  const rule = rules[near];
  if (rule === undefined) return add;
  const ports = rule.port === undefined ? "any port" : `port ${rule.port}`;
  return `grants.net[${near}] is for ${(rule.methods ?? defaultMethods).join(", ")} on ${ports}; ${add}`;
}

function describeTarget(target: NetTarget): string {
  const host = parseHost(target.host)?.text ?? JSON.stringify(clip(target.host, 80));
  const bracketed = host.includes(":") && !host.startsWith('"') ? `[${host}]` : host;
  return `${clip(target.method, 32)} ${bracketed}:${target.port}`;
}

/** Text of a script's own making, kept short and free of control characters. */
function clip(text: string, chars: number): string {
  const plain = text.replace(/[^\x20-\x7e]/g, "?");
  return plain.length <= chars ? plain : `${plain.slice(0, chars)}...`;
}
