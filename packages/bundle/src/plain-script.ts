/**
 * The short way from a file to a script: JavaScript without imports (in a TypeScript file too) is parsed by acorn and changed only where it says
 * `export`, so it costs a millisecond where esbuild costs fifty, and every position stays known. Anything this path does
 * not understand (imports, CommonJS, syntax newer than the engine's, syntax errors) goes to esbuild, which understands it
 * or words the error; this path refuses nothing by itself.
 */

import {
  type AnyNode,
  type ExportDefaultDeclaration,
  type ExportNamedDeclaration,
  type Program,
  parse,
} from "acorn";
import { type Edit, EditedText } from "./script-map.js";

/** What QuickJS 2025-09-13 parses, import attributes and pattern modifiers of 2025 included. */
const engineEdition = 2025;

/** `import(…)`, `import.meta`, `require(…)`: rough, a match in a string only means the long way. */
const needsResolver = /\bimport\s*[(.]|\brequire\s*\(|\bmodule\s*\.\s*exports\b|\bexports\s*[.[]/;

/**
 * The one form that means something else in TypeScript and is JavaScript too: `f<T>(x)`. Every other use of a type is a
 * syntax error in JavaScript, so a TypeScript file that acorn parses is JavaScript.
 */
const typeArguments = /<[^<;={}()]{0,500}>+\s*[(`]/;

/** Comments in the script goal of the language, operators in the module goal. */
const htmlComment = /<!--|-->/;

const prefix = '(function(){"use strict";';
const entryName = "__flowcell_entry";

/** The script with its map, or undefined when the long way is needed. */
export function plainScript(file: string, source: string, typed: boolean): EditedText | undefined {
  if (typed && typeArguments.test(source)) return undefined;
  if (needsResolver.test(source) || htmlComment.test(source) || source.includes(entryName)) return undefined;
  const program = parseModule(source);
  if (program === undefined || awaitsAtTopLevel(program, source)) return undefined;
  const edits: Edit[] = [{ start: 0, end: 0, text: prefix }];
  if (source.startsWith("#!")) {
    edits.push({ start: 0, end: source.search(/[\n\r\u2028\u2029]|$/), text: "" });
  }
  let entry: string | undefined;
  for (const statement of program.body) {
    switch (statement.type) {
      case "ImportDeclaration":
      case "ExportAllDeclaration":
        return undefined;
      case "ExportDefaultDeclaration":
        entry = defaultExport(statement, edits);
        break;
      case "ExportNamedDeclaration":
        if (statement.source !== null && statement.source !== undefined) return undefined;
        entry = namedExport(statement, edits) ?? entry;
        break;
      default:
    }
  }
  if (entry === undefined) return undefined;
  edits.push({ start: source.length, end: source.length, text: `\nreturn{default:${entry}}})` });
  return new EditedText(file, source, edits);
}

function parseModule(source: string): Program | undefined {
  try {
    return parse(source, {
      ecmaVersion: engineEdition,
      sourceType: "module",
      allowHashBang: true,
      // Otherwise a node in parentheses begins after them, and cutting up to it would cut them in half.
      preserveParens: true,
    });
  } catch {
    // Acorn reports even its own stack exhaustion as a syntax error.
    return undefined;
  }
}

/** The engine has no await outside functions in this form of script; esbuild words the error. */
function awaitsAtTopLevel(program: Program, source: string): boolean {
  if (!/\bawait\b/.test(source)) return false;
  const open: unknown[] = [program];
  while (open.length > 0) {
    const node = open.pop();
    if (Array.isArray(node)) open.push(...node);
    else if (typeof node === "object" && node !== null && "type" in node) {
      if (node.type === "AwaitExpression" || ("await" in node && node.await === true)) return true;
      if (!String(node.type).includes("Function")) open.push(...Object.values(node));
    }
  }
  return false;
}

/** Removes `export default`, and gives what has no name of its own a place to be found at. */
function defaultExport(statement: ExportDefaultDeclaration, edits: Edit[]): string {
  const { declaration } = statement;
  const named =
    (declaration.type === "FunctionDeclaration" || declaration.type === "ClassDeclaration") &&
    declaration.id !== null;
  if (named) {
    edits.push({ start: statement.start, end: declaration.start, text: "" });
    return declaration.id.name;
  }
  // A property called `default` gives an anonymous function the name that the language gives it.
  edits.push({ start: statement.start, end: declaration.start, text: `var ${entryName}={default:` });
  edits.push({ start: declaration.end, end: declaration.end, text: "};" });
  return `${entryName}.default`;
}

/** Removes `export`; returns the local name that is exported as default, if one is. */
function namedExport(statement: ExportNamedDeclaration, edits: Edit[]): string | undefined {
  if (statement.declaration !== null && statement.declaration !== undefined) {
    edits.push({ start: statement.start, end: statement.declaration.start, text: "" });
    return undefined;
  }
  edits.push({ start: statement.start, end: statement.end, text: ";" });
  const chosen = statement.specifiers.find((specifier) => nameOf(specifier.exported) === "default");
  return chosen === undefined ? undefined : nameOf(chosen.local);
}

function nameOf(node: AnyNode): string | undefined {
  if (node.type === "Identifier") return node.name;
  return node.type === "Literal" ? String(node.value) : undefined;
}
