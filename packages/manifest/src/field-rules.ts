/**
 * What the texts inside a manifest must look like, one rule per kind of field. A rule gets a text and answers what is wrong
 * with it and what would be right, or nothing. Called by schema.ts.
 *
 * TRUST: every text is a manifest's. Host names, paths, headers and names of grants are compared as text later on, where
 * a second spelling would be a second identity: a rule admits exactly one spelling, or the schema puts the canonical one in
 * its place (hosts, headers).
 */

import { domainToASCII } from "node:url";
import { didYouMean } from "@flowcell/protocol";
import { pathComponents } from "./fs-policy.js";
import { formatHostPattern, parseHostPattern } from "./host-pattern.js";
import { quote } from "./problem.js";

export interface RuleProblem {
  readonly message: string;
  readonly suggestion?: string | undefined;
}

export type Rule = (text: string) => RuleProblem | undefined;

/** Ids of flows and names of mounts and secrets. */
export const idRule: Rule = (text) => {
  // Of these characters, and as a key of an object no key at all.
  if (text === "__proto__") return { message: '"__proto__" cannot be a name' };
  if (/^[a-z0-9_-]{1,63}$/.test(text)) return undefined;
  const near = text.toLowerCase().replace(/[\s.]+/g, "-");
  return {
    message: `${quote(text)} must be 1 to 63 of the characters a-z, 0-9, - and _`,
    suggestion: /^[a-z0-9_-]{1,63}$/.test(near) ? near : undefined,
  };
};

export const versionRule: Rule = (text) => {
  if (/^[0-9A-Za-z.+_-]{1,64}$/.test(text)) return undefined;
  return { message: `${quote(text)} must be 1 to 64 letters, digits and . + - _, for example 1.2.0` };
};

export const eventRule: Rule = (text) => {
  if (text.length <= 128 && /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/.test(text)) return undefined;
  return {
    message: `${quote(text)} must be words of a-z, 0-9, - and _ joined by dots, for example order.created`,
    suggestion:
      /^[A-Za-z0-9_.-]+$/.test(text) && text !== text.toLowerCase() ? text.toLowerCase() : undefined,
  };
};

/** Tools are `host.tools.<name>`. A pattern is a name, or a beginning of whole parts followed by `*`, or `*`. */
export const toolRule: Rule = (text) => {
  const name = /^(?:\*|[A-Za-z_$][A-Za-z0-9_$]{0,63}(?:\.[A-Za-z_$][A-Za-z0-9_$]{0,63}){0,2}(?:\.\*)?)$/;
  const bare = text.replace(/^(?:host\.)?tools\./, "");
  if (bare === text && name.test(text)) return undefined;
  return {
    message: `${quote(text)} must be a tool's name such as calendar.list, all tools of one name such as calendar.*, or *`,
    suggestion: bare !== text && name.test(bare) ? bare : undefined,
  };
};

export const fsPathRule: Rule = (text) => {
  if (text === "") return { message: "must not be empty; leave it out for the whole mount" };
  if (pathComponents(text) !== undefined && !text.includes("\\") && text.length <= 1_024) return undefined;
  if (text.length > 1_024) return { message: "is longer than 1024 characters" };
  const near = text
    .replaceAll("\\", "/")
    .split("/")
    .filter((name) => name !== "" && name !== ".");
  return {
    message: `${quote(text)} must be a path inside the mount such as reports/2024: no / at either end, no empty, . or .. part, no backslash`,
    suggestion: near.length === 0 || near.includes("..") ? undefined : near.join("/"),
  };
};

/** One pattern of a network rule, in any spelling; canonicalHost gives the one that is kept. */
export const hostRule: Rule = (text) => {
  if (parseHostPattern(text) !== undefined) return undefined;
  const message = `${quote(text)} must be a host and nothing else: a name, *.name (one label), **.name (the name and all below), *, or an IP address`;
  return { message, suggestion: nearHost(text) };
};

/** Text that is no pattern stays as it is; its rule refuses it. */
export function canonicalHost(text: string): string {
  const parsed = parseHostPattern(text);
  return parsed === undefined ? text : formatHostPattern(parsed);
}

/** The host inside a URL, a host with a port or a path, or a name in its own script. */
function nearHost(text: string): string | undefined {
  const bare = text
    .trim()
    .replace(/^[A-Za-z][A-Za-z0-9+.-]*:\/\//, "")
    .replace(/[/?#].*$/s, "")
    .replace(/^[^@]*@/, "");
  const stars = /^\*{1,2}\./.exec(bare)?.[0] ?? "";
  const name = bare.slice(stars.length).replace(/:\d*$/, "");
  const candidate = stars + (/[^\x20-\x7e]/.test(name) ? domainToASCII(name) : name);
  const parsed = parseHostPattern(candidate);
  return parsed === undefined ? undefined : formatHostPattern(parsed);
}

/** Hosts of a secret: whoever may be named by a script must not be everybody. */
export const secretHostRule: Rule = (text) => {
  if (text === "*")
    return { message: '"*" would send the secret to any host that a script names; name the hosts' };
  return hostRule(text);
};

/** Not sent by scripts at all: a tunnel, and two that echo what was sent. */
const forbiddenMethods: ReadonlySet<string> = new Set(["CONNECT", "TRACE", "TRACK"]);
const knownMethods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"];

export const methodRule: Rule = (text) => {
  if (text === "*") return { message: `name the methods: ${knownMethods.join(", ")}` };
  if (forbiddenMethods.has(text.toUpperCase())) return { message: `${quote(text)} cannot be granted` };
  if (!/^[A-Z][A-Z0-9_-]{0,31}$/.test(text)) {
    const near = knownMethods.includes(text.toUpperCase())
      ? text.toUpperCase()
      : didYouMean(text, knownMethods);
    return { message: `${quote(text)} must be a method in capitals, for example POST`, suggestion: near };
  }
  return undefined;
};

/** What the connection or the parent decides: hop-by-hop, framing, the host, cookies. */
const forbiddenHeaders: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "cookie",
  "cookie2",
  "date",
  "expect",
  "host",
  "http2-settings",
  "keep-alive",
  "origin",
  "referer",
  "set-cookie",
  "set-cookie2",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "via",
]);

export const secretHeaderRule: Rule = (text) => {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/.test(text)) {
    return { message: `${quote(text)} must be the name of a header, for example authorization` };
  }
  const lower = text.toLowerCase();
  if (forbiddenHeaders.has(lower) || lower.startsWith("proxy-") || lower.startsWith("sec-")) {
    return { message: `the header ${quote(text)} belongs to the connection; a secret cannot stand in it` };
  }
  return undefined;
};

export const schemeRule: Rule = (text) => {
  if (/^[A-Za-z][A-Za-z0-9-]{0,31}$/.test(text)) return undefined;
  return { message: `${quote(text)} must be one word such as Bearer; the space after it is put there` };
};

export const pointerRule: Rule = (text) => {
  if (/^(?:\/(?:[^~/]|~[01])*)*$/.test(text) && text.length <= 256) return undefined;
  const dotted = /^[A-Za-z_$][\w$-]*(?:[./][A-Za-z_$][\w$-]*)*$/.test(text);
  return {
    message: `${quote(text)} must be a JSON pointer into the input, for example /customer/id`,
    suggestion: dotted ? `/${text.replaceAll(".", "/")}` : undefined,
  };
};

export const timeZoneRule: Rule = (text) => {
  // Offsets ("+01:00") are zones to some versions of the platform and not to others, and have no daylight saving.
  const wellFormed = /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+){0,2}$/.test(text);
  if (wellFormed && isTimeZone(text)) return undefined;
  const near = didYouMean(text.replaceAll(" ", "_"), ["UTC", ...Intl.supportedValuesOf("timeZone")]);
  return {
    message: `${quote(text)} is no time zone that is known here; write one like Europe/Berlin or UTC`,
    suggestion: near,
  };
};

function isTimeZone(text: string): boolean {
  try {
    new Intl.DateTimeFormat("en-US", { timeZone: text });
    return true;
  } catch {
    return false;
  }
}
