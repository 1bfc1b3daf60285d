/**
 * What a `$ref` inside a foreign schema leads to: a pointer (`#/definitions/item`), an anchor (`#item`) or the address of a
 * part (`$id`). Called by adopt-schema.ts.
 *
 * TRUST: references are a server's. They are compared as text and followed inside the schema, through own properties; no
 * address is ever opened.
 */

type Plain = { readonly [key: string]: unknown };

/** Objects looked at for anchors and addresses; a schema with more of them is refused for its size. */
const objectsMax = 50_000;

export class SchemaReferences {
  readonly #root: unknown;
  /** Schemas with an address or an anchor of their own, by the text of the reference. */
  #named: ReadonlyMap<string, Plain> | undefined;

  constructor(root: unknown) {
    this.#root = root;
  }

  /** A schema, or undefined for a reference that leads to none. */
  target(ref: string): Plain | boolean | undefined {
    if (ref === "" || ref === "#") return asSchema(this.#root);
    if (ref.startsWith("#/")) return asSchema(follow(this.#root, ref.slice(1)));
    this.#named ??= namesIn(this.#root);
    const whole = this.#named.get(ref);
    if (whole !== undefined) return whole;
    const hash = ref.indexOf("#");
    if (hash <= 0) return undefined;
    const start = this.#named.get(ref.slice(0, hash));
    const fragment = ref.slice(hash + 1);
    if (start === undefined) return undefined;
    if (fragment === "") return start;
    return fragment.startsWith("/") ? asSchema(follow(start, fragment)) : this.#named.get(`#${fragment}`);
  }
}

function asSchema(value: unknown): Plain | boolean | undefined {
  if (typeof value === "boolean") return value;
  return isObject(value) && !Array.isArray(value) ? value : undefined;
}

function follow(start: unknown, pointer: string): unknown {
  let current = start;
  for (const step of pointer.split("/").slice(1)) {
    const key = decoded(step);
    if (key === undefined || !isObject(current) || !Object.hasOwn(current, key)) return undefined;
    current = current[key];
  }
  return current;
}

function decoded(step: string): string | undefined {
  try {
    return decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return undefined;
  }
}

/** First come, first named: what repeats a name stays without one. */
function namesIn(root: unknown): ReadonlyMap<string, Plain> {
  const names = new Map<string, Plain>();
  const seen = new Set<unknown>();
  const waiting: unknown[] = [root];
  for (let next = waiting.shift(); next !== undefined && seen.size < objectsMax; next = waiting.shift()) {
    if (!isObject(next) || seen.has(next)) continue;
    seen.add(next);
    for (const keyword of ["$id", "id"]) {
      const id = next[keyword];
      if (typeof id !== "string" || id === "") continue;
      for (const name of [id, id.replace(/#$/, ""), id.slice(id.lastIndexOf("/") + 1)]) {
        if (name !== "" && !names.has(name)) names.set(name, next);
      }
    }
    for (const keyword of ["$anchor", "$dynamicAnchor"]) {
      const anchor = next[keyword];
      if (typeof anchor === "string" && !names.has(`#${anchor}`)) names.set(`#${anchor}`, next);
    }
    for (const value of Object.values(next)) waiting.push(value ?? null);
  }
  return names;
}

function isObject(value: unknown): value is Plain {
  return typeof value === "object" && value !== null;
}
