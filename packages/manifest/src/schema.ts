/**
 * The manifest's schema: which fields there are, their types, bounds and defaults, and one line about each. parse.ts reads
 * values with it; `scripts/generate-manifest.mjs` writes the table of docs/MANIFEST.md from it.
 *
 * Kept true: objects are strict at every level; every list and text has a bound; what passes is a Manifest with every
 * default filled in, in the order of the fields here. Messages come from the rules (field-rules.ts) or from issues.ts,
 * never from the schema library, whose texts change.
 */

import { type LimitName, limitNames, limitTable, parseLimits, profileLimits } from "@flowcell/protocol";
import * as z from "zod/mini";
import {
  canonicalHost,
  eventRule,
  fsPathRule,
  hostRule,
  idRule,
  methodRule,
  pointerRule,
  type Rule,
  schemeRule,
  secretHeaderRule,
  secretHostRule,
  timeZoneRule,
  toolRule,
  versionRule,
} from "./field-rules.js";
import { checkSchema, isPlainObject, type JsonSchemaObject } from "./schema-check.js";

const listMax = 256;
const minute = 60_000;
const hour = 60 * minute;

/** A text that a rule looks at; the rule words what is wrong. */
function ruled(rule: Rule): z.ZodMiniString {
  return z.string().check(
    z.maxLength(2_048),
    z.check((context) => {
      const problem = rule(context.value);
      if (problem === undefined) return;
      const { message, suggestion } = problem;
      context.issues.push({ code: "custom", input: context.value, message, params: { suggestion } });
    }),
  );
}

function text(charsMax: number): z.ZodMiniString {
  return z.string().check(z.minLength(1), z.maxLength(charsMax));
}

function whole(least: number, most: number): z.ZodMiniNumber {
  return z.int().check(z.gte(least), z.lte(most));
}

/** Each at most once: a second entry is a slip, and in an ordered list it would never be reached. */
function listOf<Item extends z.core.$ZodType>(item: Item, least = 0): z.ZodMiniArray<Item> {
  return z.array(item).check(
    z.minLength(least),
    z.maxLength(listMax),
    z.check((context) => {
      const seen = new Map<string, number>();
      for (const [index, value] of context.value.entries()) {
        const key = JSON.stringify(value);
        const first = seen.get(key);
        seen.set(key, first ?? index);
        if (first === undefined) continue;
        const message = `is the same as entry ${first}; remove one`;
        context.issues.push({ code: "custom", input: value, path: [index], message });
      }
    }),
  );
}

/** The paths of what is wrong inside lead to the keyword. */
const jsonSchema = z.custom<JsonSchemaObject>(isPlainObject).check(
  z.check((context) => {
    const result = checkSchema(context.value);
    if (result.ok) return;
    for (const { path, message, suggestion, atKey } of result.findings) {
      context.issues.push({
        code: "custom",
        input: context.value,
        path: [...path],
        message,
        params: { suggestion, atKey },
      });
    }
  }),
);

const triggers = {
  manual: z.strictObject({ kind: z.literal("manual") }),
  cron: z.strictObject({
    kind: z.literal("cron"),
    expression: text(256).check(z.describe("five or six fields, as in `0 7 * * MON-FRI`")),
    timeZone: z._default(ruled(timeZoneRule), "UTC").check(z.describe("IANA name")),
    missed: z
      ._default(z.enum(["once", "skip", "each"]), "once")
      .check(z.describe("times that passed while nothing ran: one run, none, or one each")),
  }),
  event: z.strictObject({
    kind: z.literal("event"),
    name: ruled(eventRule).check(z.describe("the event that starts a run; its data is the input")),
  }),
};

const fsRule = z.strictObject({
  mount: ruled(idRule).check(z.describe("name that the operator maps to a folder; scripts see `/<mount>/…`")),
  path: z.optional(ruled(fsPathRule)).check(z.describe("inside the mount; the whole mount when absent")),
  access: z
    .enum(["read", "write", "protect", "deny"])
    .check(z.describe("deny beats protect (never writable) beats write (implies read) beats read")),
});

const netRule = z
  .strictObject({
    host: ruled(hostRule).check(
      z.overwrite(canonicalHost),
      z.describe("a name, `*.name` (one label), `**.name` (the name and all below), `*`, or an IP address"),
    ),
    port: z.optional(whole(1, 65_535)).check(z.describe("any port when absent")),
    methods: z
      .optional(listOf(ruled(methodRule), 1))
      .check(z.describe("when absent: GET and HEAD; every method for a rule that denies")),
    action: z
      ._default(z.enum(["allow", "deny"]), "allow")
      .check(z.describe("the first rule that matches decides")),
    reason: z.optional(text(200)).check(z.describe("what a script is told when this rule denies")),
  })
  .check(
    z.check((context) => {
      if (context.value.reason === undefined || context.value.action === "deny") return;
      const message = 'is only for rules with "action": "deny"';
      context.issues.push({ code: "custom", input: context.value, path: ["reason"], message });
    }),
  );

const secretGrant = z.strictObject({
  name: ruled(idRule).check(z.describe("the operator's name of the secret")),
  hosts: listOf(ruled(secretHostRule).check(z.overwrite(canonicalHost)), 1).check(
    z.describe("patterns as in net; sent to these over HTTPS only"),
  ),
  header: ruled(secretHeaderRule).check(
    z.overwrite((name) => name.toLowerCase()),
    z.describe("the one header that it may stand in"),
  ),
  scheme: z.optional(ruled(schemeRule)).check(z.describe("put before the value, with a space")),
});

const grants = z.strictObject({
  fs: z.prefault(listOf(fsRule), []).check(z.describe("files")),
  net: z.prefault(listOf(netRule), []).check(z.describe("requests; ordered, and nothing else is allowed")),
  secrets: z.prefault(listOf(secretGrant), []).check(z.describe("secrets that are put into requests")),
  kv: z
    ._default(z.nullable(z.strictObject({ maxBytes: whole(1, 1024 ** 3) })), null)
    .check(z.describe("a key-value store of the flow's own; `maxBytes` is of all keys and values together")),
  tools: z
    .prefault(listOf(ruled(toolRule)), [])
    .check(z.describe("the operator's tools, as `calendar.list` or `calendar.*`")),
  flows: z.prefault(listOf(ruled(idRule)), []).check(z.describe("ids of flows that it may start")),
  events: z.prefault(listOf(ruled(eventRule)), []).check(z.describe("names of events that it may emit")),
});

/** One limit; the table of limits words what is wrong with it. */
function limit(name: LimitName): z.ZodMiniOptional<z.ZodMiniCustom<number, unknown>> {
  const { unit, least, most, meaning } = limitTable[name];
  const schema = z
    .custom<number>(() => true)
    .check(
      z.check((context) => {
        const result = parseLimits({ [name]: context.value }, profileLimits("flow"));
        if (result.ok) return;
        context.issues.push({ code: "custom", input: context.value, message: result.message });
      }),
      z.meta({ description: `${meaning} (${unit})`, type: "integer", minimum: least, maximum: most }),
    );
  return z.optional(schema);
}

// Made of every name of the table.
const budgets = Object.fromEntries(limitNames.map((name) => [name, limit(name)])) as {
  [name in LimitName]: ReturnType<typeof limit>;
};

const concurrency = z.strictObject({
  key: z
    .optional(ruled(pointerRule))
    .check(z.describe("JSON pointer into the input; runs with different values there do not count together")),
  limit: z._default(whole(1, 1_000), 1).check(z.describe("runs at one time; suspended ones count")),
  onLimit: z
    ._default(z.enum(["queue", "skip", "cancelOldest"]), "queue")
    .check(z.describe("what becomes of a run beyond the limit")),
});

const retry = z.strictObject({
  attempts: z._default(whole(1, 10), 1).check(z.describe("runs before it is given up, the first included")),
  backoffMs: z
    ._default(whole(0, hour), 1_000)
    .check(z.describe("before the second attempt; doubled for each further one")),
});

export const manifestSchema = z.strictObject({
  $schema: z.optional(text(2_048)).check(z.describe("for editors; not read")),
  format: z.literal(1).check(z.describe("version of this format")),
  id: ruled(idRule).check(z.describe("1 to 63 of a-z, 0-9, - and _")),
  version: z.optional(ruled(versionRule)).check(z.describe("of the flow, for people")),
  description: z.optional(text(1_024)).check(z.describe("for people")),
  input: z
    .optional(jsonSchema)
    .check(z.meta({ type: "object", description: "JSON Schema of the input; checked before a run starts" })),
  output: z
    .optional(jsonSchema)
    .check(z.meta({ type: "object", description: "JSON Schema of the result; checked when a run ends" })),
  trigger: z
    .prefault(z.discriminatedUnion("kind", [triggers.manual, triggers.cron, triggers.event]), {
      kind: "manual",
    })
    .check(z.describe("what starts a run")),
  retry: z.prefault(retry, {}).check(z.describe("after a failure that may pass")),
  grants: z.prefault(grants, {}).check(z.describe("what the script may use")),
  budgets: z
    .prefault(z.strictObject(budgets), {})
    .check(z.describe("limits that differ from the profile's; the operator's ceilings hold above them")),
  concurrency: z.prefault(concurrency, {}).check(z.describe("runs of this flow at one time")),
  deadlineMs: z
    ._default(whole(1_000, 24 * hour), 10 * minute)
    .check(z.describe("of a run as a whole, time suspended not counted")),
  retention: z
    .optional(z.strictObject({ days: whole(1, 3_650) }))
    .check(z.describe("how long finished runs are kept; the operator's rule when absent")),
});

/** The names of the fields at a place, for suggestions; `[]` stands for any entry of a list. Undefined: not an object. */
export function knownKeys(place: string): readonly string[] {
  const shapes: Readonly<Record<string, object>> = {
    "": manifestSchema.shape,
    trigger: { ...triggers.cron.shape, ...triggers.event.shape },
    retry: retry.shape,
    grants: grants.shape,
    "grants.fs.[]": fsRule.shape,
    "grants.net.[]": netRule.shape,
    "grants.secrets.[]": secretGrant.shape,
    "grants.kv": { maxBytes: null },
    budgets,
    concurrency: concurrency.shape,
    retention: { days: null },
  };
  const shape = Object.hasOwn(shapes, place) ? shapes[place] : undefined;
  return shape === undefined ? [] : Object.keys(shape);
}
