/**
 * Host names, IP literals and the patterns that stand for them. One canonical form, so that a rule and a request can be
 * compared as text. Called by the evaluator of network rules (net-policy.ts), by the manifest's schema and by whoever
 * compares the hosts of a secret.
 *
 * Trust: a host comes from a script's URL and may be anything; a pattern comes from a manifest.
 * Kept true: what is neither a name of DNS labels nor an IP literal has no canonical form and therefore matches nothing,
 * `*` included. Two spellings of one address have one form, so that a rule that denies an address cannot be passed by
 * another spelling of it:
 * - letters are lower case (ASCII only; other scripts are compared in their `xn--` form, which URL parsers produce);
 * - one dot at the end is dropped: `example.com.` is the same name in DNS, only exempt from search lists;
 * - IPv6 has no brackets, is written as RFC 5952 says and has no zone; an IPv4 address inside IPv6 (`::ffff:1.2.3.4`) is
 *   that IPv4 address, because that is where the packets go;
 * - a last label that is a number (`127.1`, `0x7f.0.0.1`, `2130706433`) is refused unless the whole is dotted decimal:
 *   the platform's resolvers would read it as an address that the rule did not name.
 */

const nameCharsMax = 253;
const labelPattern = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const numberLabelPattern = /^(?:[0-9]+|0x[0-9a-f]*)$/;
const octetPattern = /^(?:0|[1-9][0-9]{0,2})$/;
const groupPattern = /^[0-9a-f]{1,4}$/;

export type HostName =
  | { readonly kind: "name"; readonly text: string }
  | { readonly kind: "ip"; readonly text: string };

export type HostPattern =
  | { readonly kind: "any" }
  | { readonly kind: "exact"; readonly host: HostName }
  /** `*.suffix`: exactly one label before it. */
  | { readonly kind: "child"; readonly suffix: string }
  /** `**.suffix`: the suffix itself and any number of labels before it. */
  | { readonly kind: "tree"; readonly suffix: string };

/** The canonical form of a host, or undefined when the text is no host. */
export function parseHost(text: string): HostName | undefined {
  // The longest literal is a name with its dot; longer text is not looked at.
  if (text.length === 0 || text.length > nameCharsMax + 1) return undefined;
  const lower = lowerAscii(text);
  if (lower.startsWith("[")) {
    return lower.endsWith("]") ? parseIpv6(lower.slice(1, -1)) : undefined;
  }
  if (lower.includes(":")) return parseIpv6(lower);
  const name = lower.endsWith(".") ? lower.slice(0, -1) : lower;
  if (name.length > nameCharsMax) return undefined;
  const labels = name.split(".");
  if (numberLabelPattern.test(labels.at(-1) ?? "")) return parseIpv4(name);
  return labels.every((label) => labelPattern.test(label)) ? { kind: "name", text: name } : undefined;
}

/** What a pattern of a manifest stands for, or undefined when it is none. */
export function parseHostPattern(text: string): HostPattern | undefined {
  if (text === "*") return { kind: "any" };
  const kind = text.startsWith("**.") ? "tree" : text.startsWith("*.") ? "child" : undefined;
  const host = parseHost(kind === undefined ? text : text.slice(kind === "tree" ? 3 : 2));
  if (host === undefined) return undefined;
  if (kind === undefined) return { kind: "exact", host };
  return host.kind === "name" ? { kind, suffix: host.text } : undefined;
}

/** The pattern in canonical form: what approvals show and manifests are compared by. */
export function formatHostPattern(pattern: HostPattern): string {
  switch (pattern.kind) {
    case "any":
      return "*";
    case "exact":
      return pattern.host.text;
    case "child":
      return `*.${pattern.suffix}`;
    case "tree":
      return `**.${pattern.suffix}`;
  }
}

/**
 * Whether a host falls under a pattern. A host that is none matches nothing.
 * Throws a RangeError for a pattern that is none: it did not pass the schema, and deciding "no match" would open what a
 * rule with action "deny" was written to close.
 */
export function hostMatches(pattern: string, host: string): boolean {
  const parsed = parseHostPattern(pattern);
  if (parsed === undefined) throw new RangeError(`${JSON.stringify(pattern)} is no host pattern`);
  const name = parseHost(host);
  return name !== undefined && patternMatches(parsed, name);
}

function patternMatches(pattern: HostPattern, host: HostName): boolean {
  switch (pattern.kind) {
    case "any":
      return true;
    case "exact":
      return pattern.host.text === host.text;
    case "child": {
      if (host.kind !== "name" || !host.text.endsWith(`.${pattern.suffix}`)) return false;
      return !host.text.slice(0, -pattern.suffix.length - 1).includes(".");
    }
    case "tree":
      return (
        host.kind === "name" && (host.text === pattern.suffix || host.text.endsWith(`.${pattern.suffix}`))
      );
  }
}

/** `toLowerCase` maps letters of other scripts too, some of them (the Kelvin sign) to ASCII ones. */
function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

function parseIpv4(text: string): HostName | undefined {
  const octets = text.split(".");
  const valid =
    octets.length === 4 && octets.every((octet) => octetPattern.test(octet) && Number(octet) <= 255);
  return valid ? { kind: "ip", text } : undefined;
}

function parseIpv6(text: string): HostName | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const groups = halves.map((half, index) => ipv6Groups(half, index === halves.length - 1));
  const [head, tail] = groups;
  if (head === undefined || groups.includes(undefined)) return undefined;
  if (tail === undefined) return head.length === 8 ? formatIpv6(head) : undefined;
  const missing = 8 - head.length - tail.length;
  return missing >= 1 ? formatIpv6([...head, ...Array<number>(missing).fill(0), ...tail]) : undefined;
}

/** The 16-bit groups of one side of `::`; only the last side may end with a dotted IPv4 address. */
function ipv6Groups(text: string, last: boolean): number[] | undefined {
  if (text === "") return [];
  const groups: number[] = [];
  const parts = text.split(":");
  for (const [index, part] of parts.entries()) {
    if (part.includes(".")) {
      if (!last || index !== parts.length - 1 || parseIpv4(part) === undefined) return undefined;
      const [a = 0, b = 0, c = 0, d = 0] = part.split(".").map(Number);
      groups.push(a * 256 + b, c * 256 + d);
    } else {
      if (!groupPattern.test(part)) return undefined;
      groups.push(Number.parseInt(part, 16));
    }
  }
  return groups.length <= 8 ? groups : undefined;
}

/** RFC 5952: hexadecimal without leading zeros, the longest run of at least two zero groups (the first of equals) as `::`. */
function formatIpv6(groups: readonly number[]): HostName {
  const [, , , , , mapped = 0, high = 0, low = 0] = groups;
  if (mapped === 0xffff && groups.slice(0, 5).every((group) => group === 0)) {
    return { kind: "ip", text: [high >> 8, high & 255, low >> 8, low & 255].join(".") };
  }
  let start = -1;
  let length = 1;
  for (let from = 0; from < groups.length; from++) {
    let to = from;
    while (to < groups.length && groups[to] === 0) to++;
    if (to - from > length) {
      start = from;
      length = to - from;
    }
  }
  const hex = groups.map((group) => group.toString(16));
  if (start === -1) return { kind: "ip", text: hex.join(":") };
  return { kind: "ip", text: `${hex.slice(0, start).join(":")}::${hex.slice(start + length).join(":")}` };
}
