/**
 * What a version of a flow may reach, in a reviewer's words: pure, over its manifest. The approval view and `show` print it;
 * nothing is enforced by it.
 *
 * Kept true: lists are sorted, except the network's, whose order decides; every remark names the grant that it is about.
 */

import {
  defaultMethods,
  hostMatches,
  type Manifest,
  type NetRule,
  parseHostPattern,
} from "@flowcell/manifest";
import { type Limits, limitNames, profileLimits } from "@flowcell/protocol";
import type { Reach, ReachDifference } from "../ports.js";

export function reachOf(manifest: Manifest, budgets: Limits): Reach {
  const { grants } = manifest;
  return {
    hosts: grants.net.map(netLine),
    mounts: grants.fs
      .map(({ mount, path, access }) => `${access} /${mount}${path === undefined ? "" : `/${path}`}`)
      .sort(),
    secrets: grants.secrets
      .map(({ name, hosts, header, scheme }) => {
        const value = scheme === undefined ? "" : ` (${scheme} …)`;
        return `${name} in ${header}${value} to ${hosts.join(", ")}`;
      })
      .sort(),
    kvMaxBytes: grants.kv?.maxBytes ?? 0,
    flows: [...grants.flows].sort(),
    events: [...grants.events].sort(),
    tools: [...grants.tools].sort(),
    budgets,
    trigger: triggerLine(manifest),
    remarks: remarksOf(manifest, budgets),
  };
}

export function triggerLine({ trigger }: Manifest): string {
  switch (trigger.kind) {
    case "manual":
      return "manual";
    case "cron":
      return `cron ${trigger.expression} (${trigger.timeZone}, missed: ${trigger.missed})`;
    case "event":
      return `event ${trigger.name}`;
  }
}

function netLine(rule: NetRule): string {
  const port = rule.port === undefined ? "any port" : `port ${rule.port}`;
  const methods =
    rule.methods?.join(", ") ?? (rule.action === "deny" ? "every method" : defaultMethods.join(", "));
  return `${rule.action ?? "allow"} ${rule.host}, ${port}, ${methods}`;
}

function remarksOf(manifest: Manifest, budgets: Limits): readonly string[] {
  const { grants } = manifest;
  return [
    ...netRemarks(grants.net),
    ...fsRemarks(manifest),
    ...grants.secrets.map(
      ({ name, hosts }) => `grants.secrets: uses the secret "${name}" at ${hosts.join(", ")}`,
    ),
    ...secretRemarks(manifest),
    ...grants.tools
      .filter((tool) => tool.endsWith("*"))
      .map((tool) => `grants.tools: "${tool}" is every tool of that name, later ones too`),
    ...(grants.flows.includes(manifest.id) ? ["grants.flows: it may start itself"] : []),
    ...budgetRemarks(budgets),
  ];
}

function netRemarks(rules: readonly NetRule[]): readonly string[] {
  const remarks: string[] = [];
  for (const [index, rule] of rules.entries()) {
    const where = `grants.net[${index}]`;
    if (rule.action === "deny") {
      const earlier = rules
        .slice(0, index)
        .findIndex((other) => other.action !== "deny" && overlaps(other, rule));
      if (earlier !== -1) {
        remarks.push(
          `${where}: denies ${rule.host}, but grants.net[${earlier}] comes first and allows some of it`,
        );
      }
      continue;
    }
    const pattern = parseHostPattern(rule.host);
    if (pattern?.kind === "any") remarks.push(`${where}: any host on the internet`);
    else if (pattern?.kind === "tree" || pattern?.kind === "child")
      remarks.push(`${where}: every host that ${rule.host} stands for`);
    if (rule.port === undefined) remarks.push(`${where}: any port of ${rule.host}`);
    const more = (rule.methods ?? []).filter((method) => !defaultMethods.includes(method.toUpperCase()));
    if (more.length > 0) remarks.push(`${where}: may change things at ${rule.host} (${more.join(", ")})`);
  }
  const wide = rules.some((rule) => rule.action !== "deny" && parseHostPattern(rule.host)?.kind !== "exact");
  if (wide && !rules.some((rule) => rule.action === "deny")) {
    remarks.push("grants.net: patterns without any rule that denies");
  }
  return remarks;
}

/** Whether some request could match both; methods aside, which may only make it fewer. */
function overlaps(one: NetRule, other: NetRule): boolean {
  if (one.port !== undefined && other.port !== undefined && one.port !== other.port) return false;
  return sample(one.host, other.host) || sample(other.host, one.host);
}

/** Whether the pattern matches a host that the other one stands for. */
function sample(pattern: string, other: string): boolean {
  const parsed = parseHostPattern(other);
  switch (parsed?.kind) {
    case undefined:
      return false;
    case "any":
      return true;
    case "exact":
      return hostMatches(pattern, parsed.host.text);
    case "child":
      return hostMatches(pattern, `x.${parsed.suffix}`);
    case "tree":
      return hostMatches(pattern, parsed.suffix) || hostMatches(pattern, `x.${parsed.suffix}`);
  }
}

function fsRemarks({ grants }: Manifest): readonly string[] {
  const remarks: string[] = [];
  for (const [index, { mount, path, access }] of grants.fs.entries()) {
    const whole = path === undefined;
    const shown = whole ? `all of /${mount}` : `/${mount}/${path}`;
    if (access === "write")
      remarks.push(`grants.fs[${index}]: writes, replaces and deletes files in ${shown}`);
    else if (access === "read" && whole) remarks.push(`grants.fs[${index}]: reads ${shown}`);
  }
  const opened = new Set(
    grants.fs.filter(({ access }) => access === "read" || access === "write").map(({ mount }) => mount),
  );
  const restricted = new Set(
    grants.fs.filter(({ access }) => access === "deny" || access === "protect").map(({ mount }) => mount),
  );
  for (const mount of opened) {
    if (!restricted.has(mount) && grants.fs.some((rule) => rule.mount === mount && rule.path === undefined)) {
      remarks.push(`grants.fs: /${mount} has no rule that denies or protects`);
    }
  }
  return remarks;
}

/** What is read here can be sent there. */
function secretRemarks({ grants }: Manifest): readonly string[] {
  const reads = grants.fs.some(({ access }) => access === "read" || access === "write");
  const sends = grants.net.some(({ action }) => action !== "deny");
  return reads && sends
    ? ["grants.fs and grants.net: what it reads from files can be sent to those hosts"]
    : [];
}

function budgetRemarks(budgets: Limits): readonly string[] {
  const usual = profileLimits("flow");
  return limitNames
    .filter((name) => budgets[name] > usual[name])
    .map((name) => `budgets.${name}: ${budgets[name]}, more than the usual ${usual[name]}`);
}

/** What an approval would change: lines of `Reach` that are new or gone. */
export function reachDifference(before: Reach, after: Reach, beforeHash: string): ReachDifference {
  const lines = (reach: Reach): readonly string[] => [
    ...reach.hosts.map((line) => `net: ${line}`),
    ...reach.mounts.map((line) => `fs: ${line}`),
    ...reach.secrets.map((line) => `secret: ${line}`),
    ...(reach.kvMaxBytes === 0 ? [] : [`kv: ${reach.kvMaxBytes} bytes`]),
    ...reach.flows.map((line) => `flow: ${line}`),
    ...reach.events.map((line) => `event: ${line}`),
    ...reach.tools.map((line) => `tool: ${line}`),
    ...limitNames.map((name) => `budget: ${name} ${reach.budgets[name]}`),
    `trigger: ${reach.trigger}`,
  ];
  const old = lines(before);
  const now = lines(after);
  const reordered =
    before.hosts.length === after.hosts.length &&
    before.hosts.every((line) => after.hosts.includes(line)) &&
    before.hosts.some((line, index) => line !== after.hosts[index]);
  return {
    approvedHash: beforeHash,
    added: [
      ...now.filter((line) => !old.includes(line)),
      ...(reordered ? ["net: the rules stand in another order"] : []),
    ],
    removed: old.filter((line) => !now.includes(line)),
  };
}
