/**
 * What is wrong with a manifest, and where: the same shape from the reading of the text, the schema and the checks of JSON
 * Schemas. Paths are lists of keys inside this package and text outside it.
 */

export type Path = readonly (string | number)[];

export interface ManifestProblem {
  /** The file, as the caller named it. */
  readonly label: string;
  /** Such as `grants.net[0].host`; empty for the manifest as a whole. */
  readonly path: string;
  /** Both from 1; columns count UTF-16 units, as editors do. */
  readonly line: number;
  readonly column: number;
  /** What is wrong and what would be right. */
  readonly message: string;
  /** What was probably meant, ready to be put in its place. */
  readonly suggestion?: string;
}

/** A problem before its place in the text is known. */
export interface Finding {
  readonly path: Path;
  /** Points at the key instead of the value. */
  readonly atKey?: boolean;
  readonly message: string;
  readonly suggestion?: string | undefined;
}

const plainKey = /^[A-Za-z_$][A-Za-z0-9_$-]*$/;
const keyCharsMax = 80;
const pathPartsMax = 48;

/** `grants.net[0].host`, `input.properties["a b"]`. Keys come from the file: they are cut and escaped. */
export function pathText(path: Path): string {
  const parts = path.slice(0, pathPartsMax).map((part, index) => {
    if (typeof part === "number") return `[${part}]`;
    if (plainKey.test(part) && part.length <= keyCharsMax) return index === 0 ? part : `.${part}`;
    return `[${quote(part, keyCharsMax)}]`;
  });
  return parts.join("") + (path.length > pathPartsMax ? "…" : "");
}

/** Text of a file or a caller inside quotes: cut, and without anything that a terminal or an eye could be fooled by. */
export function quote(text: string, charsMax = 60): string {
  const cut = text.length <= charsMax ? text : `${text.slice(0, charsMax - 1)}…`;
  return JSON.stringify(cut).replace(/[^\x20-\x7e\u2026]/g, (unit) => {
    return /\p{L}|\p{N}|\p{P}|\p{S}/u.test(unit) ? unit : escapeUnit(unit);
  });
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** `flow.json:3:12: grants.net[0].host: … (did you mean "x"?)` on one line. */
export function formatManifestProblem(problem: ManifestProblem): string {
  const where = problem.path === "" ? "" : `${problem.path}: `;
  const hint = problem.suggestion === undefined ? "" : `; did you mean ${quote(problem.suggestion)}?`;
  return `${problem.label}:${problem.line}:${problem.column}: ${where}${problem.message}${hint}`;
}
