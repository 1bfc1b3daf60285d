/**
 * Which names a host function may have. They become properties of the guest's `host` object, so a name must be typed with
 * dots, and must not be one that JavaScript itself looks up on objects: an object with a `then` is a promise to `await`.
 */

const segment = /^[A-Za-z_$][A-Za-z0-9_$]{0,63}$/;
const segmentsMax = 4;
const charactersMax = 128;

const reservedSegments: ReadonlySet<string> = new Set([
  ...Object.getOwnPropertyNames(Object.prototype),
  "prototype",
  "then",
  "toJSON",
]);

/** `host.log` is console, not a call. */
const reservedNames: ReadonlySet<string> = new Set(["log"]);

/** Why a name cannot be one, or undefined. */
export function nameProblem(name: string): string | undefined {
  if (name.length > charactersMax) return `is longer than ${charactersMax} characters`;
  const segments = name.split(".");
  if (segments.length > segmentsMax) return `has more than ${segmentsMax} parts`;
  if (!segments.every((part) => segment.test(part))) {
    return "is not made of identifiers joined by dots, for example kv.get";
  }
  const reserved = segments.find((part) => reservedSegments.has(part));
  if (reserved !== undefined) return `holds "${reserved}", which JavaScript looks up on every object`;
  return reservedNames.has(segments[0] ?? "") ? "is taken by the console" : undefined;
}

/** The names that `name` would clash with as a namespace: `kv` and `kv.get` cannot both be there. */
export function enclosingNames(name: string): readonly string[] {
  const segments = name.split(".");
  return segments.slice(1).map((_, index) => segments.slice(0, index + 1).join("."));
}
