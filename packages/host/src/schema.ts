/**
 * What the registry needs of a schema: the Standard Schema interface, which zod (and zod/mini) schemas have. Declared here
 * so that embedders may bring any such library, and so that a run loads none for functions that need none.
 */

export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

export interface Schema<Output> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

export function isSchema(value: unknown): value is Schema<unknown> {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const standard: unknown = "~standard" in value ? value["~standard"] : undefined;
  return (
    typeof standard === "object" &&
    standard !== null &&
    "validate" in standard &&
    typeof standard.validate === "function"
  );
}

export interface Problem {
  /** `argument 2 .rows[3]`, or "" for the arguments as a whole. */
  readonly where: string;
  readonly what: string;
  readonly path: readonly (string | number)[];
}

const pathPartsMax = 32;

/** The first issue, worded for the author of a script; paths begin at the list of arguments. */
export function argumentProblem(issues: readonly SchemaIssue[]): Problem {
  const issue = issues[0];
  if (issue === undefined) return { where: "", what: "the arguments are refused", path: [] };
  const path = (issue.path ?? []).slice(0, pathPartsMax).map(pathPart);
  const [first, ...rest] = path;
  if (first === undefined) return { where: "", what: wholeText(issue), path };
  const inner = rest.map((part) => (typeof part === "number" ? `[${part}]` : `.${part}`)).join("");
  const position = typeof first === "number" ? `argument ${first + 1}` : `.${first}`;
  return { where: inner === "" ? position : `${position} ${inner}`, what: issueText(issue), path };
}

function pathPart(part: PropertyKey | { readonly key: PropertyKey }): string | number {
  const key = typeof part === "object" ? part.key : part;
  return typeof key === "number" ? key : String(key).slice(0, 100);
}

/** A list of arguments that is too short or too long has no path of its own. */
function wholeText(issue: SchemaIssue): string {
  const few = field(issue, "minimum");
  if (typeof few === "number") return `takes at least ${count(few)}`;
  const many = field(issue, "maximum");
  if (typeof many === "number") return many === 0 ? "takes no arguments" : `takes at most ${count(many)}`;
  return issueText(issue);
}

function count(arguments_: number): string {
  return arguments_ === 1 ? "1 argument" : `${arguments_} arguments`;
}

/** zod/mini without a locale says only "Invalid input"; what it expected is beside the message. */
function issueText(issue: SchemaIssue): string {
  const expected = field(issue, "expected");
  if (issue.message === "Invalid input" && typeof expected === "string") return `expected ${expected}`;
  return issue.message.slice(0, 500);
}

/** A field that some libraries' issues have beside the interface's two. */
function field(issue: SchemaIssue, name: string): unknown {
  return Object.entries(issue).find(([key]) => key === name)?.[1];
}
