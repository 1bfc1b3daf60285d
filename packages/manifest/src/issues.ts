/** Turns what the schema library found into problems that say what is wrong, where, and what would be right. */

import { didYouMean, parseLimits, profileLimits } from "@flowcell/protocol";
import type * as z from "zod/mini";
import { type Finding, type Path, quote } from "./problem.js";
import { knownKeys } from "./schema.js";
import { describe, kindOf } from "./schema-check.js";

/** What other formats, and people, call the same thing. Suggested, never accepted. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ["name", "id"],
  ["apiversion", "format"],
  ["formatversion", "format"],
  ["schemaversion", "format"],
  ["inputs", "input"],
  ["inputschema", "input"],
  ["outputs", "output"],
  ["outputschema", "output"],
  ["result", "output"],
  ["on", "trigger"],
  ["triggers", "trigger"],
  ["schedule", "trigger"],
  ["cron", "trigger"],
  ["permissions", "grants"],
  ["capabilities", "grants"],
  ["limits", "budgets"],
  ["resources", "budgets"],
  ["retries", "retry"],
  ["deadline", "deadlineMs"],
  ["timeout", "deadlineMs"],
  ["timeoutms", "deadlineMs"],
  ["files", "fs"],
  ["filesystem", "fs"],
  ["network", "net"],
  ["http", "net"],
  ["fetch", "net"],
  ["storage", "kv"],
  ["url", "host"],
  ["hostname", "host"],
  ["domain", "host"],
  ["method", "methods"],
  ["tz", "timeZone"],
  ["timezone", "timeZone"],
  ["mode", "access"],
  ["ondeny", "reason"],
]);

/** `root` is the value that was checked. */
export function findingsOf(issue: z.core.$ZodIssue, root: unknown): readonly Finding[] {
  const path = stepsOf(issue.path);
  const found = valueAt(root, path);
  const one = (message: string, suggestion?: string): Finding[] => [{ path, message, suggestion }];
  switch (issue.code) {
    case "custom":
      return [customFinding(issue, path, found)];
    case "unrecognized_keys":
      return issue.keys.map((key) => unknownKey(path, key, root));
    case "invalid_type":
      if (found === undefined) return [missing(path, issue.expected)];
      return one(`must be ${wanted(issue.expected)}, not ${describe(found)}`);
    case "invalid_value":
      return one(...invalidValue(path, issue.values, found));
    case "invalid_union": {
      if (found === undefined) return [missing(path, "string")];
      const options = Object.entries(issue).find(([key]) => key === "options")?.[1];
      return one(...invalidValue(path, Array.isArray(options) ? options : [], found));
    }
    case "too_small":
    case "too_big":
      return one(outOfRange(issue, found));
    case "invalid_format":
    case "not_multiple_of":
    case "invalid_key":
    case "invalid_element":
      return one(`${describe(found)} is not valid here (${issue.code})`);
  }
}

function stepsOf(path: readonly PropertyKey[]): Path {
  return path.map((step) => (typeof step === "number" ? step : String(step)));
}

function customFinding(issue: z.core.$ZodIssueCustom, path: Path, found: unknown): Finding {
  // The base check of a schema given as a function has no text of its own: only `input` and `output` are such.
  if (issue.message === "Invalid input") {
    return { path, message: `must be a JSON Schema as an object, not ${kindOf(found)}` };
  }
  const suggestion: unknown = issue.params?.["suggestion"];
  return {
    path,
    message: issue.message,
    atKey: issue.params?.["atKey"] === true,
    suggestion: typeof suggestion === "string" ? suggestion : undefined,
  };
}

function unknownKey(path: Path, key: string, root: unknown): Finding {
  const place = path.map((step) => (typeof step === "number" ? "[]" : step)).join(".");
  const inside = [...path, key];
  if (place === "budgets") {
    const result = parseLimits({ [key]: 1 }, profileLimits("flow"));
    if (!result.ok) return { path: inside, atKey: true, message: result.message };
  }
  const known = keysAt(place, path, root);
  const other = otherNames.get(key.toLowerCase().replace(/[_-]/g, ""));
  const near = other !== undefined && known.includes(other) ? other : didYouMean(key, known);
  const message = `unknown key ${quote(key)}; the keys here are ${known.join(", ")}`;
  return { path: inside, atKey: true, message, suggestion: near };
}

/** Which keys a trigger has depends on its kind. */
function keysAt(place: string, path: Path, root: unknown): readonly string[] {
  const known = knownKeys(place).filter((key) => key !== "$schema");
  if (place !== "trigger") return known;
  switch (valueAt(root, [...path, "kind"])) {
    case "manual":
      return ["kind"];
    case "event":
      return ["kind", "name"];
    default:
      return known.filter((key) => key !== "name");
  }
}

function missing(path: Path, expected: string): Finding {
  if (path.at(-1) === "format") return { path, message: "is missing; write 1" };
  return { path, message: `is missing; it must be ${wanted(expected)}` };
}

function wanted(expected: string): string {
  switch (expected) {
    case "int":
      return "a whole number";
    case "array":
      return "a list";
    case "object":
      return "an object";
    case "string":
      return "a text";
    default:
      return `a ${expected}`;
  }
}

function invalidValue(path: Path, values: readonly unknown[], found: unknown): [string, string | undefined] {
  const names = values.map(String);
  if (path.length === 1 && path[0] === "format") {
    const what = found === undefined ? "is missing" : `${describe(found)} is not known`;
    return [`${what}; this version of flowcell reads format 1`, undefined];
  }
  if (found === undefined) return [`is missing; it must be one of ${names.join(", ")}`, undefined];
  const near = typeof found === "string" ? didYouMean(found, names) : undefined;
  return [`${describe(found)} must be one of ${names.join(", ")}`, near];
}

function outOfRange(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig, found: unknown): string {
  const small = issue.code === "too_small";
  const bound = `${small ? "at least" : "at most"} ${small ? issue.minimum : issue.maximum}`;
  if (Array.isArray(found)) return `must have ${bound} entries, not ${found.length}`;
  if (typeof found === "string") return `must have ${bound} characters, not ${found.length}`;
  return `must be ${bound}, not ${describe(found)}`;
}

/** What stands at a path of the value; undefined when nothing does. */
function valueAt(value: unknown, path: Path): unknown {
  let current = value;
  for (const step of path) {
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, step)) return undefined;
    current = (current as Record<string | number, unknown>)[step]; // an object that has it, by the line above
  }
  return current;
}
