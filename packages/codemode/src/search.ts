/**
 * Finding tools by words, for models that need not read five hundred schemas: the words of names, descriptions and parameters,
 * ranked. Called by the MCP server's `search`, which has the index made ahead, and by embedding programs.
 *
 * Kept true: the same tools and words give the same hits in the same order; a query costs no more than its bound of words.
 */

import MiniSearch from "minisearch";
import type { Tool, ToolSet } from "./tools.js";
import { isPlain } from "./types/adopt-schema.js";
import { toolSignature } from "./types/compact.js";
import { compare, toolDeclaration } from "./types/declarations.js";
import { jsonOf } from "./types/tool-type.js";

export interface SearchOptions {
  /** Default 10, at most 50. */
  readonly limit?: number;
}

export interface ToolHit {
  readonly tool: Tool;
  /** Above 0; comparable within one search only. */
  readonly score: number;
  /** On one line: `github.list_issues(input: { … }): Promise<unknown>`. */
  readonly signature: string;
  /** TypeScript with its comments, inside its namespace. */
  readonly declaration: string;
}

/** Tools, in one turn of the event loop. */
const indexedAtOnce = 8;
const limitDefault = 10;
const limitMost = 50;
const queryCharsMax = 1_000;
const queryWordsMax = 40;
/** Of a description or of all parameters of one tool. */
const indexedCharsMax = 4_000;
const schemaDepthMax = 6;

interface Entry {
  readonly id: number;
  readonly name: string;
  readonly namespace: string;
  readonly summary: string;
  readonly description: string;
  readonly parameters: string;
}

const fields = ["name", "namespace", "summary", "description", "parameters"] as const;
const boost = { name: 4, namespace: 2.5, summary: 2, description: 1, parameters: 0.6 };

/** Words that say nothing about which tool is meant. */
const stopWords: ReadonlySet<string> = new Set(
  (
    "a an and any are as at be by can could do does for from have how i if in into is it its me my need of on or our please " +
    "should some something anything that the their them then there these this to tool tools use using want was we what when where which will " +
    "with would you your"
  ).split(" "),
);

/** What people call the same act; each is found by the others, with less weight. */
const sameActs: readonly (readonly string[])[] = [
  ["create", "add", "new", "make", "insert", "open"],
  ["delete", "remove", "drop", "erase"],
  ["get", "read", "fetch", "retrieve", "show", "view", "describe", "load"],
  ["list", "all", "every"],
  ["search", "find", "query", "lookup", "look"],
  ["update", "edit", "modify", "change", "rename", "set", "patch"],
  ["send", "post", "reply", "write"],
  ["remember", "memory", "memorize", "recall"],
  ["store", "save", "keep", "memory"],
  ["navigate", "open", "visit", "go", "goto"],
  ["run", "execute", "invoke", "evaluate"],
  ["directory", "folder"],
  ["page", "website", "site", "url", "webpage"],
  ["screenshot", "picture", "image", "capture"],
  ["chart", "diagram", "graph", "plot"],
];
const sameActWeight = 0.35;
/** What a name is worth whose own words are all in the query: see `nameFit`. */
const fitWeight = 0.5;
/** A word of so many names of a namespace says what the namespace is about: `browser_click`, `kubectl_get`. */
const commonShare = 0.3;
const commonLeast = 4;

export class ToolSearch {
  readonly #tools: readonly Tool[];
  readonly #index: MiniSearch<Entry>;
  readonly #ownWords: ReadonlyMap<Tool, readonly string[]>;
  #indexed = 0;

  constructor(set: ToolSet) {
    this.#tools = set.tools;
    this.#index = new MiniSearch<Entry>({
      fields: [...fields],
      tokenize: words,
      processTerm: (term) => (stopWords.has(term) ? null : stem(term)),
    });
    this.#ownWords = ownWords(set.tools);
  }

  /** Indexes some more tools; false when all are. */
  index(most: number): boolean {
    const end = Math.min(this.#tools.length, this.#indexed + most);
    for (const [offset, tool] of this.#tools.slice(this.#indexed, end).entries())
      this.#index.add(entryOf(tool, this.#indexed + offset));
    this.#indexed = end;
    return end < this.#tools.length;
  }

  /** The best first; those alike in the order of their names. None when no word is known. */
  search(query: string, options: SearchOptions = {}): readonly ToolHit[] {
    this.index(this.#tools.length);
    const limit = options.limit ?? limitDefault;
    if (!Number.isSafeInteger(limit) || limit < 1 || limit > limitMost)
      throw new RangeError(`limit must be a whole number from 1 to ${limitMost}`);
    const asked = [...new Set(words(query.slice(0, queryCharsMax)))].slice(0, queryWordsMax);
    const meant = asked.filter((word) => !stopWords.has(word));
    const others = new Set(meant.flatMap((word) => sameAs(stem(word))));
    for (const word of meant) others.delete(stem(word));
    const results = this.#index.search(
      {
        combineWith: "OR",
        queries: [
          { queries: [meant.join(" ")], fields: [...fields] },
          {
            queries: [[...others].join(" ")],
            fields: ["name", "namespace", "summary"],
            boostTerm: () => sameActWeight,
            fuzzy: false,
            prefix: false,
          },
        ],
      },
      {
        boost,
        prefix: (term) => term.length >= 4,
        fuzzy: (term) => (term.length >= 5 ? 0.2 : false),
        weights: { fuzzy: 0.2, prefix: 0.5 },
      },
    );
    const stems = new Set(meant.map(stem));
    const ranked = results.flatMap(({ id, score }) => {
      const tool = typeof id === "number" ? this.#tools[id] : undefined;
      return tool === undefined ? [] : [{ tool, score: score * this.#nameFit(tool, stems) }];
    });
    ranked.sort((a, b) => b.score - a.score || compare(callName(a.tool), callName(b.tool)));
    return ranked.slice(0, limit).map(({ tool, score }) => hitOf(tool, score));
  }

  /**
   * Above 1 where the query's own words stand in the name: for "click a button" browser_click is nearer than
   * browser_mouse_click_xy, whose further words nobody asked for, and for "delete a pod" kubectl_delete is nearer than what
   * drops.
   */
  #nameFit(tool: Tool, asked: ReadonlySet<string>): number {
    const own = this.#ownWords.get(tool) ?? [];
    const found = own.filter((word) => asked.has(word)).length;
    return found === 0 ? 1 : 1 + (fitWeight * found) / own.length;
  }
}

/** The words of each tool's name that tell it from the others of its namespace. */
function ownWords(tools: readonly Tool[]): ReadonlyMap<Tool, readonly string[]> {
  const names = new Map(tools.map((tool) => [tool, [...new Set(words(tool.originalName).map(stem))]]));
  const sizes = new Map<string, number>();
  const counts = new Map<string, number>();
  for (const [{ namespace }, all] of names) {
    sizes.set(namespace, (sizes.get(namespace) ?? 0) + 1);
    for (const word of all) counts.set(`${namespace} ${word}`, (counts.get(`${namespace} ${word}`) ?? 0) + 1);
  }
  const tells = ({ namespace }: Tool, word: string): boolean => {
    const count = counts.get(`${namespace} ${word}`) ?? 0;
    return count < commonLeast || count < commonShare * (sizes.get(namespace) ?? 0);
  };
  return new Map(
    [...names].map(([tool, all]) => {
      const own = all.filter((word) => tells(tool, word));
      return [tool, own.length === 0 ? all : own];
    }),
  );
}

const searches = new WeakMap<ToolSet, ToolSearch>();

/** One search in a set; its index is made with the first, unless `indexTools` has made it. */
export function searchTools(set: ToolSet, query: string, options: SearchOptions = {}): readonly ToolHit[] {
  return searchOf(set).search(query, options);
}

/** Makes the index of a set while the program goes on: hundreds of tools take longer than an event loop should wait. */
export async function indexTools(set: ToolSet): Promise<void> {
  const search = searchOf(set);
  while (search.index(indexedAtOnce)) await new Promise((resolve) => setImmediate(resolve));
}

function searchOf(set: ToolSet): ToolSearch {
  const search = searches.get(set) ?? new ToolSearch(set);
  searches.set(set, search);
  return search;
}

function hitOf(tool: Tool, score: number): ToolHit {
  return {
    tool,
    score,
    signature: `${callName(tool)}${toolSignature(tool)}`,
    declaration: toolDeclaration(tool),
  };
}

function callName(tool: Tool): string {
  return `${tool.namespace}.${tool.name}`;
}

function entryOf(tool: Tool, id: number): Entry {
  const description = tool.description.slice(0, indexedCharsMax);
  const json = tool.input === null ? undefined : jsonOf(tool.input);
  const parameters: string[] = [];
  collect(json, parameters, 0);
  return {
    id,
    name: `${tool.name} ${tool.originalName}`,
    namespace: tool.namespace,
    summary: /^.*?[.!?\n](?=\s|$)/s.exec(description)?.[0] ?? description.slice(0, 200),
    description,
    parameters: parameters.join(" ").slice(0, indexedCharsMax),
  };
}

/** Names, descriptions and the values of enumerations, from the outside in. */
function collect(schema: unknown, texts: string[], depth: number): void {
  if (!isPlain(schema) || depth > schemaDepthMax || texts.length > 200) return;
  const { properties, description, items, anyOf, oneOf, allOf, enum: values } = schema;
  if (typeof description === "string" && depth > 0) texts.push(description);
  if (Array.isArray(values)) texts.push(...values.filter((each): each is string => typeof each === "string"));
  for (const [name, each] of Object.entries(isPlain(properties) ? properties : {})) {
    texts.push(name);
    collect(each, texts, depth + 1);
  }
  collect(items, texts, depth + 1);
  for (const list of [anyOf, oneOf, allOf]) {
    if (Array.isArray(list)) for (const each of list) collect(each, texts, depth + 1);
  }
}

/** `listIssues`, `list_issues`, `list-issues` and `HTTPRequest2` are words. */
function words(text: string): string[] {
  const apart = text
    .replaceAll(/(\p{Ll}|\p{N})(\p{Lu})/gu, "$1 $2")
    .replaceAll(/(\p{Lu})(\p{Lu}\p{Ll})/gu, "$1 $2");
  return (apart.match(/\p{L}+|\p{N}+/gu) ?? []).map((word) => word.toLowerCase());
}

/** Enough of English that `issues` is `issue` and `creating` is `create`; the same for texts and queries. */
function stem(word: string): string {
  if (word.length > 5 && word.endsWith("ing")) return trimE(undouble(word.slice(0, -3)));
  if (word.length > 4 && word.endsWith("ied")) return `${word.slice(0, -3)}y`;
  if (word.length > 4 && word.endsWith("ies")) return `${word.slice(0, -3)}y`;
  if (word.length > 4 && word.endsWith("ed")) return trimE(undouble(word.slice(0, -2)));
  if (word.length > 4 && /(?:s|x|z|ch|sh)es$/.test(word)) return trimE(word.slice(0, -2));
  if (word.length > 3 && word.endsWith("s") && !word.endsWith("ss")) return trimE(word.slice(0, -1));
  return trimE(word);
}

function undouble(word: string): string {
  return /([bdgmnprt])\1$/.test(word) ? word.slice(0, -1) : word;
}

function trimE(word: string): string {
  return word.length > 3 && word.endsWith("e") ? word.slice(0, -1) : word;
}

const actsByStem = new Map<string, Set<string>>();
for (const acts of sameActs) {
  for (const act of acts) {
    const others = actsByStem.get(stem(act)) ?? new Set();
    for (const other of acts) others.add(stem(other));
    actsByStem.set(stem(act), others);
  }
}

function sameAs(stemmed: string): readonly string[] {
  return [...(actsByStem.get(stemmed) ?? [])];
}
