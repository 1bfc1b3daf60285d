/**
 * Which form a script has, and the edits that make it the inside of an async function: a body, a function by itself, or a
 * module. normalize.ts calls it with what acorn parsed of JavaScript, typescript.ts with what esbuild made of TypeScript.
 *
 * Kept true: the text was parsed by itself before anything is put around it, so that nothing in it can end the function that
 * it becomes part of; text of the script is moved nowhere, only words are added and `export` taken away.
 */

import type { Edit } from "@flowcell/bundle";
import type {
  AnyNode,
  ExportDefaultDeclaration,
  ExportNamedDeclaration,
  Expression,
  ModuleDeclaration,
  Program,
  Statement,
} from "acorn";

export type FormResult =
  | {
      readonly ok: true;
      /** Sorted, within the parsed text. */
      readonly edits: readonly Edit[];
      /** What stands after the last line. */
      readonly ending: string;
      readonly warning?: string;
    }
  | { readonly ok: false; readonly code: "import_refused" | "no_default_export"; readonly at: number };

type Item = Statement | ModuleDeclaration;

/** What the default export of a module is called inside; longer names do not stand in a script by chance. */
const entryName = "__flowcell_entry";

export function formOf(program: Program): FormResult {
  const items = program.body;
  if (items.some(({ type }) => type.startsWith("Export") || type.startsWith("Import")))
    return moduleForm(items);
  // Without imports and exports, every item is a statement.
  return { ok: true, ...bodyForm(items.filter(isStatement)) };
}

function isStatement(item: Item): item is Statement {
  return !item.type.startsWith("Export") && !item.type.startsWith("Import");
}

interface BodyForm {
  readonly edits: readonly Edit[];
  readonly ending: string;
  readonly warning?: string;
}

/** A function that stands alone is called; else the script is its statements, and an expression at the end is its result. */
export function bodyForm(all: readonly Statement[]): BodyForm {
  const statements = all.filter(({ type }) => type !== "EmptyStatement");
  const last = statements.at(-1);
  if (last === undefined) return { edits: [], ending: "" };
  const name = functionToCall(statements);
  if (name !== undefined) return { edits: [], ending: `\nreturn await ${name}();` };
  if (last.type === "ExpressionStatement") {
    const { expression } = last;
    const called = statements.length === 1 && isFunctionExpression(unwrapped(expression));
    return { edits: around(expression, "return(", called ? ")();" : ");"), ending: "" };
  }
  if (!statements.every(({ type }) => type === "FunctionDeclaration")) return { edits: [], ending: "" };
  const warning =
    "the script only declares functions and calls none; call one, or name the one to start with main";
  return { edits: [], ending: "", warning };
}

/** The one function that the script declares, or the one called main when it declares nothing else than functions. */
function functionToCall(statements: readonly Statement[]): string | undefined {
  const names = statements.map(declaredFunction);
  if (names.includes(undefined)) return undefined;
  return names.length === 1 ? names[0] : names.find((name) => name === "main");
}

function declaredFunction(statement: Statement): string | undefined {
  if (statement.type === "FunctionDeclaration") return statement.generator ? undefined : statement.id.name;
  if (statement.type !== "VariableDeclaration") return undefined;
  const [declaration, second] = statement.declarations;
  if (declaration === undefined || second !== undefined || declaration.id.type !== "Identifier")
    return undefined;
  const { init } = declaration;
  if (init === null || init === undefined || !isFunctionExpression(unwrapped(init))) return undefined;
  return declaration.id.name;
}

function unwrapped(expression: Expression): Expression {
  let inner = expression;
  while (inner.type === "ParenthesizedExpression") inner = inner.expression;
  return inner;
}

function isFunctionExpression(expression: Expression): boolean {
  if (expression.type === "ArrowFunctionExpression") return true;
  return expression.type === "FunctionExpression" && !expression.generator;
}

function around(node: AnyNode, before: string, after: string): Edit[] {
  return [
    { start: node.start, end: node.start, text: before },
    { start: node.end, end: node.end, text: after },
  ];
}

// ----------------------------------------------------------------------------------------------------------------- modules

function moduleForm(items: readonly Item[]): FormResult {
  const edits: Edit[] = [];
  let entry: string | undefined;
  for (const item of items) {
    switch (item.type) {
      case "ImportDeclaration":
      case "ExportAllDeclaration":
        return { ok: false, code: "import_refused", at: item.start };
      case "ExportDefaultDeclaration":
        entry = defaultExport(item, edits);
        break;
      case "ExportNamedDeclaration":
        if (item.source !== null && item.source !== undefined)
          return { ok: false, code: "import_refused", at: item.start };
        entry = namedExport(item, edits) ?? entry;
        break;
      default:
    }
  }
  if (entry === undefined) return { ok: false, code: "no_default_export", at: items[0]?.start ?? 0 };
  return { ok: true, edits, ending: `\nreturn typeof ${entry}==="function"?await ${entry}():${entry};` };
}

/** Removes `export default`, and gives what has no name of its own a place to be found at. */
function defaultExport({ start, declaration }: ExportDefaultDeclaration, edits: Edit[]): string {
  const named =
    (declaration.type === "FunctionDeclaration" || declaration.type === "ClassDeclaration") &&
    declaration.id !== null;
  if (named) {
    edits.push({ start, end: declaration.start, text: "" });
    return declaration.id.name;
  }
  // A property called `default` gives an anonymous function the name that the language gives it.
  edits.push({ start, end: declaration.start, text: `var ${entryName}={default:` });
  edits.push({ start: declaration.end, end: declaration.end, text: "};" });
  return `${entryName}.default`;
}

/** Removes `export`; the local name of what is exported as default, if something is. */
function namedExport(item: ExportNamedDeclaration, edits: Edit[]): string | undefined {
  const { start, end, declaration, specifiers } = item;
  if (declaration !== null && declaration !== undefined) {
    edits.push({ start, end: declaration.start, text: "" });
    return undefined;
  }
  edits.push({ start, end, text: ";" });
  const chosen = specifiers.find(({ exported }) => nameOf(exported) === "default");
  return chosen === undefined ? undefined : nameOf(chosen.local);
}

function nameOf(node: AnyNode): string | undefined {
  if (node.type === "Identifier") return node.name;
  return node.type === "Literal" ? String(node.value) : undefined;
}
