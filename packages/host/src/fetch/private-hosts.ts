/**
 * The private hosts that an operator opened by configuration: "127.0.0.1:8080", "[::1]:8080", "intranet.example", with or
 * without a port. Read once when the function is made.
 *
 * Kept true: an entry opens exactly its host, and exactly its port when it has one. It opens the way to the address only;
 * the manifest's rules still decide whether a script may go there, and no secret goes over plain HTTP.
 */

import { isIP } from "node:net";
import { parseHost } from "@flowcell/manifest";
import { HostFunctionError } from "../registry.js";

export interface PrivateHosts {
  has(host: string, port: number): boolean;
}

interface Entry {
  readonly host: string;
  readonly port: number | undefined;
}

/** Throws HostFunctionError for an entry that is none. */
export function privateHosts(entries: readonly string[]): PrivateHosts {
  const parsed = entries.map(parseEntry);
  return {
    has: (host, port) => {
      const name = parseHost(host)?.text;
      return parsed.some((entry) => entry.host === name && (entry.port === undefined || entry.port === port));
    },
  };
}

const bracketed = /^\[([^\]]*)\](?::(\d{1,5}))?$/;
const plain = /^([^:]*)(?::(\d{1,5}))?$/;

function parseEntry(text: string): Entry {
  const refuse = (): never => {
    throw new HostFunctionError(
      `fetch: ${JSON.stringify(text)} is no private host; write a host, or host:port, for example "127.0.0.1:8080"`,
    );
  };
  if (isIP(text) === 6) return { host: parseHost(text)?.text ?? refuse(), port: undefined };
  const [, host, digits] = bracketed.exec(text) ?? plain.exec(text) ?? refuse();
  const port = digits === undefined ? undefined : Number(digits);
  if (port !== undefined && (port < 1 || port > 65_535)) refuse();
  if (text.startsWith("[") && isIP(host ?? "") !== 6) refuse();
  return { host: parseHost(host ?? "")?.text ?? refuse(), port };
}
