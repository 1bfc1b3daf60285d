/**
 * Which addresses a fetch may go to. Asked for every resolved address and for every IP literal, before the connection.
 *
 * Trust: an address comes from a resolver that an attacker may own, or from a script's URL.
 * Kept true: only what is public passes. A mapped IPv4 address is that address; one that carries another inside
 * (NAT64, 6to4, Teredo) passes only if the inner one does, since that is where the packets may go. Not public, although the library that knows
 * the ranges calls them unicast: every IPv6 address outside 2000::/3 (nothing else is assigned; `::127.0.0.1` is one of
 * them), and addresses that clouds answer metadata at. NAT64's local-use prefix (64:ff9b:1::/48) is refused as a whole:
 * where in it the IPv4 address stands is each network's own choice.
 */

import { isIP } from "node:net";
import { parseHost } from "@flowcell/manifest";
import ipaddr from "ipaddr.js";

/** Where clouds hand out credentials or control a machine; in part inside public or operator-openable ranges. */
const metadataAddresses: ReadonlySet<string> = new Set([
  "168.63.129.16", // Azure
  "169.254.169.254", // most of them
  "169.254.170.2", // Amazon ECS
  "169.254.170.23", // Amazon EKS
  "169.254.42.42", // Scaleway
  "169.254.0.23", // Tencent
  "100.100.100.200", // Alibaba
  "192.0.0.192", // Oracle
  "fd00:ec2::254", // Amazon
  "fd00:ec2::23", // Amazon EKS
  "fd20:ce::254", // Google
  "fe80::a9fe:a9fe", // OpenStack
]);

/** Ranges that a private host, opened by its name, may be in. */
const openableRanges: ReadonlySet<string> = new Set([
  "loopback",
  "private",
  "uniqueLocal",
  "carrierGradeNat",
]);

type Parsed = ReturnType<typeof ipaddr.parse>;
type Rule = (address: Parsed) => boolean;

/** Whether anybody on the internet may be reached at this address. False for what is no address in its usual form. */
export function isPublicAddress(text: string): boolean {
  return passes(text, isPublic);
}

/** Whether a host that the operator opened by name may be at this address: public or private, but no metadata service. */
export function isOpenableAddress(text: string): boolean {
  return passes(text, (address) => isPublic(address) || isOpenable(address));
}

/** One spelling for each address, a mapped IPv4 address being itself; undefined for what is none, or has a zone. */
export function canonicalAddress(text: string): string | undefined {
  // A zone names an interface of this machine. Octal and short forms, which the library reads, are no addresses to isIP.
  if (text.includes("%") || isIP(text) === 0) return undefined;
  return parseHost(text)?.text;
}

function passes(text: string, rule: Rule): boolean {
  // Not the text itself: the library reads `::1.2.3.4` as `::ffff:1.2.3.4`, which is another address.
  const canonical = canonicalAddress(text);
  if (canonical === undefined) return false;
  const reached = reachedBy(ipaddr.parse(canonical));
  return reached.length > 0 && reached.every(rule);
}

/** The address itself, or the IPv4 addresses that it carries, none of which carries a further one. */
function reachedBy(address: Parsed): readonly Parsed[] {
  if (address.kind() === "ipv4") return [address];
  const { parts } = address as ipaddr.IPv6; // of the kind that was asked for
  const [, first = 0, second = 0, third = 0] = parts;
  const [high = 0, low = 0] = parts.slice(6);
  switch (address.range()) {
    case "rfc6052":
      return second === 0 ? [ipv4(high, low)] : [];
    case "6to4":
      return [ipv4(first, second)];
    case "teredo":
      // The server, and the client's address, which is stored inverted.
      return [ipv4(second, third), ipv4(high ^ 0xffff, low ^ 0xffff)];
    default:
      return [address];
  }
}

function ipv4(high: number, low: number): Parsed {
  return new ipaddr.IPv4([high >> 8, high & 0xff, low >> 8, low & 0xff]);
}

function isPublic(address: Parsed): boolean {
  if (metadataAddresses.has(address.toString())) return false;
  if (address.range() !== "unicast") return false;
  if (address.kind() === "ipv4") return true;
  const [first = 0] = (address as ipaddr.IPv6).parts; // of the other kind
  return first >> 13 === 1;
}

function isOpenable(address: Parsed): boolean {
  return !metadataAddresses.has(address.toString()) && openableRanges.has(address.range());
}
