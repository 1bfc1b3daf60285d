/**
 * How scripts write paths: `/<mount>/a/b`. Called by every `fs.*` row before anything else is done with a path.
 *
 * TRUST: the text is a script's. What comes out is a mount's name and components that are each one name, in normal form
 * and within the bounds of the system; whether they may be reached is decided elsewhere.
 */

import { HostError } from "@flowcell/protocol";

/** Linux's own bounds are 4095 bytes and 255 bytes; the depth bounds the descriptors that one walk holds. */
const pathBytesMax = 4095;
const nameBytesMax = 255;
export const depthMax = 100;

export interface ScriptPath {
  /** As the script wrote it; safe to show to the script. */
  readonly text: string;
  readonly mount: string;
  /** Components below the mount; none for the mount itself. */
  readonly names: readonly string[];
}

/** Temporary files of `fs.write`. Scripts neither see nor name them. */
const temporaryName = /^\.flowcell-[0-9a-f]{32}$/;

export function isTemporaryName(name: string): boolean {
  return temporaryName.test(name);
}

/** Throws `invalid_arguments`. */
export function parseScriptPath(call: string, text: string): ScriptPath {
  const refuse = (what: string): never => {
    throw new HostError("invalid_arguments", `${call}: ${what}`, { detail: { file: shorten(text) } });
  };
  if (!text.startsWith("/")) refuse(`${quote(text)} is no path; paths begin with a mount: /data/report.csv`);
  if (text.includes("\0") || /\p{Surrogate}/u.test(text)) {
    refuse("the path holds a zero byte or half of a surrogate pair");
  }
  if (Buffer.byteLength(text) > pathBytesMax) refuse(`the path is longer than ${pathBytesMax} bytes`);
  const [mount = "", ...names] = text.slice(1).split("/");
  if (mount === "") refuse(`${quote(text)} names no mount; paths begin with one: /data/report.csv`);
  if (names.length > depthMax) refuse(`the path has more than ${depthMax} components`);
  for (const name of [mount, ...names]) {
    if (name === "")
      refuse(`${quote(text)} has an empty component; write it with single slashes and none at the end`);
    if (name === "." || name === "..")
      refuse(`${quote(text)} has a component ${name}; write the path without it`);
    if (Buffer.byteLength(name) > nameBytesMax)
      refuse(`a component of the path is longer than ${nameBytesMax} bytes`);
    if (isTemporaryName(name)) refuse(`the name ${name} is reserved for files that are being written`);
  }
  return { text, mount, names };
}

/** Where components lie, as scripts write it. */
export function scriptText(mount: string, names: readonly string[]): string {
  return ["", mount, ...names].join("/");
}

/** A path for a message: a script can make one of 4 KiB. */
export function shorten(text: string): string {
  return text.length <= 300 ? text : `${text.slice(0, 299)}…`;
}

function quote(text: string): string {
  return JSON.stringify(shorten(text));
}
