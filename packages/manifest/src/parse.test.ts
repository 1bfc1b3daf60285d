/** Manifests: what is read, what is refused, and that every refusal says where. */

import { readFileSync } from "node:fs";
import { limitNames } from "@flowcell/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { manifestBytesMax } from "./json-document.js";
import { type ManifestResult, manifestJson, parseManifest } from "./parse.js";
import { formatManifestProblem, type ManifestProblem } from "./problem.js";

const least = { format: 1, id: "a" };

function problemsOf(result: ManifestResult): readonly ManifestProblem[] {
  return result.ok ? [] : result.problems;
}

function read(value: unknown): ManifestResult {
  return parseManifest(JSON.stringify(value, null, 2));
}

/** Sets what a path such as `grants.net[0].host` leads to. */
function withField(path: string, value: unknown): unknown {
  const steps = path.split(/[.[\]]+/).filter((step) => step !== "");
  const build = (index: number): unknown => {
    const step = steps[index];
    if (step === undefined) return value;
    return /^\d+$/.test(step)
      ? [build(index + 1)]
      : { ...neighbours(steps.slice(0, index)), [step]: build(index + 1) };
  };
  return build(0);
}

/** The other fields that something at this place must have. */
function neighbours(above: readonly string[]): object {
  switch (above.join(".")) {
    case "":
      return least;
    case "grants":
      return { net: [{ host: "a.example" }] };
    case "trigger":
      return { kind: "cron", expression: "0 0 * * *" };
    case "grants.fs.0":
      return { mount: "data", access: "read" };
    case "grants.net.0":
      return { host: "a.example" };
    case "grants.secrets.0":
      return { name: "key", hosts: ["a.example"], header: "authorization" };
    default:
      return {};
  }
}

describe("what is read", () => {
  test("format and id are enough, and every default is filled in", () => {
    expect(read(least)).toEqual({
      ok: true,
      manifest: {
        format: 1,
        id: "a",
        trigger: { kind: "manual" },
        retry: { attempts: 1, backoffMs: 1_000 },
        grants: { fs: [], net: [], secrets: [], kv: null, tools: [], flows: [], events: [] },
        budgets: {},
        concurrency: { limit: 1, onLimit: "queue" },
        deadlineMs: 600_000,
      },
    });
  });

  const whole = {
    $schema: "https://example.com/flow.schema.json",
    format: 1,
    id: "price-watch_2",
    version: "1.2.0-rc.1+5",
    description: "Watches prices.\nTwo lines, äöü, 価格.",
    input: { type: "object", properties: { symbol: { type: "string" } }, required: ["symbol"] },
    output: { type: "object" },
    trigger: { kind: "cron", expression: "0 7 * * MON-FRI", timeZone: "Europe/Berlin", missed: "skip" },
    retry: { attempts: 3, backoffMs: 5_000 },
    grants: {
      fs: [
        { mount: "reports", path: "2024/q1", access: "write" },
        { mount: "reports", path: "2024/q1/.lock", access: "deny" },
      ],
      net: [
        { host: "**.Example.COM", methods: ["GET", "POST"], port: 8443 },
        { host: "*", action: "deny", reason: "nothing else" },
      ],
      secrets: [{ name: "key", hosts: ["api.example.com"], header: "X-Api-Key", scheme: "Bearer" }],
      kv: { maxBytes: 65_536 },
      tools: ["calendar.list", "mail.*"],
      flows: ["other"],
      events: ["order.created"],
    },
    budgets: { wallMs: 1_000, cpuMs: 500 },
    concurrency: { key: "/symbol", limit: 2, onLimit: "cancelOldest" },
    deadlineMs: 3_600_000,
    retention: { days: 30 },
  };

  test("every field arrives, hosts and headers in the spelling in which they are compared", () => {
    const { $schema: _, ...fields } = whole;
    const result = read(whole);
    expect(problemsOf(result).map(formatManifestProblem)).toEqual([]);
    expect(result.ok && result.manifest).toEqual({
      ...fields,
      grants: {
        ...whole.grants,
        net: [
          { host: "**.example.com", methods: ["GET", "POST"], port: 8443, action: "allow" },
          { host: "*", action: "deny", reason: "nothing else" },
        ],
        secrets: [{ name: "key", hosts: ["api.example.com"], header: "x-api-key", scheme: "Bearer" }],
      },
    });
  });

  test("the example of the documentation is one", () => {
    const page = readFileSync(new URL("../../../docs/MANIFEST.md", import.meta.url), "utf8");
    const example = /```jsonc\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
    const result = parseManifest(example);
    expect(problemsOf(result).map(formatManifestProblem)).toEqual([]);
    expect(result).toMatchObject({ ok: true, manifest: { id: "price-watch" } });
  });

  test("a manifest is frozen to the bottom", () => {
    const result = read(whole);
    const open: unknown[] = [];
    const walk = (value: unknown): void => {
      if (typeof value !== "object" || value === null) return;
      if (!Object.isFrozen(value)) open.push(value);
      for (const inner of Object.values(value)) walk(inner);
    };
    walk(result.ok && result.manifest);
    expect(result.ok).toBe(true);
    expect(open).toEqual([]);
  });

  test("the canonical text reads back to the same manifest and the same text", () => {
    const first = read(whole);
    const text = first.ok ? manifestJson(first.manifest) : "";
    const second = parseManifest(text);
    expect(second).toEqual(first);
    expect(second.ok && manifestJson(second.manifest)).toBe(text);
  });

  test("texts that differ in comments, order, spacing and written-out defaults have one canonical text", () => {
    const one = parseManifest('{"format":1,"id":"a","budgets":{"cpuMs":5,"wallMs":9}}');
    const other = parseManifest(`// a flow
      { "budgets": { "wallMs": 9, /* little */ "cpuMs": 5 }, "deadlineMs": 600000,
        "trigger": { "kind": "manual" }, "$schema": "x", "id": "a", "format": 1 }`);
    expect(one.ok && other.ok).toBe(true);
    expect(one.ok && manifestJson(one.manifest)).toBe(other.ok && manifestJson(other.manifest));
  });

  test("bytes and text read the same, with and without a byte order mark", () => {
    const text = '{"format":1,"id":"a","description":"ä"}';
    const expected = parseManifest(text);
    expect(expected.ok).toBe(true);
    expect(parseManifest(new TextEncoder().encode(text))).toEqual(expected);
    expect(parseManifest(new TextEncoder().encode(`\ufeff${text}`))).toEqual(expected);
    expect(parseManifest(`\ufeff${text}`)).toEqual(expected);
  });

  test("an event trigger has a name", () => {
    expect(read({ ...least, trigger: { kind: "event", name: "order.created" } })).toMatchObject({
      ok: true,
      manifest: { trigger: { kind: "event", name: "order.created" } },
    });
  });

  test("the cron checker's word is final, and it hears the zone", () => {
    const heard: string[] = [];
    const checkCron = (expression: string, timeZone: string): string | null => {
      heard.push(`${expression}|${timeZone}`);
      return expression === "bad" ? '"bad" has one field' : null;
    };
    const text = (expression: string): string =>
      JSON.stringify({ ...least, trigger: { kind: "cron", expression, timeZone: "Asia/Tokyo" } });
    expect(parseManifest(text("0 0 * * *"), { checkCron }).ok).toBe(true);
    expect(problemsOf(parseManifest(text("bad"), { checkCron }))).toMatchObject([
      { path: "trigger.expression", message: '"bad" has one field' },
    ]);
    expect(heard).toEqual(["0 0 * * *|Asia/Tokyo", "bad|Asia/Tokyo"]);
  });
});

describe("a wrong value of any field is refused with its path and its place", () => {
  const rows: readonly [path: string, wrong: readonly unknown[]][] = [
    ["$schema", [1, ""]],
    ["format", [0, 2, "1", null]],
    ["id", ["", "__proto__", "A", "a b", "a.b", "a".repeat(64), 1, null, "ä"]],
    ["version", ["", "1 0", "1/0", 1, "x".repeat(65)]],
    ["description", ["", 1, "x".repeat(1_025)]],
    ["input", [[], true, "object", null]],
    ["output", [[], false]],
    ["trigger", ["cron", [], null]],
    ["trigger.kind", ["cronn", 1, null]],
    ["trigger.expression", ["", 1, "x".repeat(257)]],
    ["trigger.timeZone", ["Mars/Base", "+01:00", "", 1]],
    ["trigger.missed", ["all", 1]],
    ["retry", [3, []]],
    ["retry.attempts", [0, 11, 1.5, "1", null]],
    ["retry.backoffMs", [-1, 3_600_001, 0.5]],
    ["grants", [[], "all", null]],
    ["grants.fs", [{}, "read"]],
    ["grants.fs[0]", ["read", null]],
    ["grants.fs[0].mount", ["", "A", "a/b", "..", 1]],
    [
      "grants.fs[0].path",
      ["", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\\b", "C:\\x", 1, "x".repeat(1_025)],
    ],
    ["grants.fs[0].access", ["rw", "Read", 1, null]],
    ["grants.net", [{}]],
    [
      "grants.net[0].host",
      [
        "",
        "https://a.example",
        "a.example/x",
        "a.example:80",
        "a b",
        "bücher.example",
        "*.*.a",
        "**",
        "127.1",
        1,
      ],
    ],
    ["grants.net[0].port", [0, 65_536, 1.5, "80"]],
    ["grants.net[0].methods", [[], "GET"]],
    ["grants.net[0].methods[0]", ["get", "*", "CONNECT", "TRACE", "track", "GET POST", "", 1]],
    ["grants.net[0].action", ["block", true]],
    ["grants.net[0].reason", ["", 1, "only for denials"]],
    ["grants.secrets", [{}]],
    ["grants.secrets[0].name", ["", "A B", 1]],
    ["grants.secrets[0].hosts", [[], "a.example"]],
    ["grants.secrets[0].hosts[0]", ["*", "https://a.example", ""]],
    [
      "grants.secrets[0].header",
      [
        "",
        "a b",
        "a:b",
        "Host",
        "cookie",
        "Proxy-Authorization",
        "Connection",
        "TE",
        "sec-fetch-mode",
        "Content-Length",
      ],
    ],
    ["grants.secrets[0].scheme", ["", "Bearer ", "two words", 1]],
    ["grants.kv", [true, 100, []]],
    ["grants.kv.maxBytes", [0, -1, 1.5, 2 ** 31]],
    ["grants.tools[0]", ["", "a*", "*.a", "a..b", "tools.a", "a-b", 1]],
    ["grants.flows[0]", ["A", "", "*"]],
    ["grants.events[0]", ["", "A.b", "a..b", ".a", "a.", "*"]],
    ["budgets", [[], 1]],
    ...limitNames.map((name): [string, unknown[]] => [`budgets.${name}`, [-1, 1.5, "1", null, 2 ** 50]]),
    ["concurrency", [2]],
    ["concurrency.key", ["symbol", "/a~", "/a~2", 1]],
    ["concurrency.limit", [0, 1_001, 1.5]],
    ["concurrency.onLimit", ["wait", "cancel-oldest", 1]],
    ["deadlineMs", [999, 86_400_001, 1.5, "10m", null]],
    ["retention", [30, null]],
    ["retention.days", [0, 3_651, 1.5]],
  ];

  test.each(rows)("%s", (path, wrongs) => {
    for (const wrong of wrongs) {
      const text = JSON.stringify(withField(path, wrong), null, 2);
      const problems = problemsOf(parseManifest(text));
      const about = problems.find((problem) => problem.path === path);
      expect(about, `${path} = ${JSON.stringify(wrong)}: ${JSON.stringify(problems)}`).toBeDefined();
      // The place is where the value begins.
      const line = text.split("\n")[(about?.line ?? 0) - 1] ?? "";
      const begins = (JSON.stringify(wrong, null, 2).split("\n")[0] ?? "").slice(0, 40);
      expect(line.slice((about?.column ?? 0) - 1).startsWith(begins)).toBe(true);
      expect(about?.message.length ?? 0).toBeLessThan(600);
    }
  });

  test.each([
    "",
    "trigger",
    "retry",
    "grants",
    "grants.fs[0]",
    "grants.net[0]",
    "grants.secrets[0]",
    "grants.kv",
  ])("an unknown key in %j is refused, also those that every object inherits", (place) => {
    for (const key of ["colour", "constructor", "toString", "hasOwnProperty", "prototype"]) {
      const path = place === "" ? key : `${place}.${key}`;
      const value =
        place === "grants.kv" ? { ...least, grants: { kv: { maxBytes: 1, [key]: 1 } } } : withField(path, 1);
      const problem = problemsOf(read(value)).find((each) => each.path === path);
      expect(problem?.message).toMatch(/^unknown key "/);
    }
  });

  test.each(["concurrency", "retention", "budgets"])("an unknown key in %j is refused", (place) => {
    const problems = problemsOf(read({ ...least, [place]: { constructor: 1 } }));
    expect(problems.map((each) => each.path)).toContain(`${place}.constructor`);
  });

  test.each([
    ["grant", "grants"],
    ["permissions", "grants"],
    ["deadline", "deadlineMs"],
    ["timeout_ms", "deadlineMs"],
    ["budget", "budgets"],
    ["descripton", "description"],
    ["schedule", "trigger"],
  ])("for %s it suggests %s", (key, suggestion) => {
    const [problem] = problemsOf(read({ ...least, [key]: 1 }));
    expect(problem).toMatchObject({ path: key, suggestion, line: 4, column: 3 });
  });

  test("what is missing is named", () => {
    expect(problemsOf(parseManifest("{}")).map((problem) => problem.path)).toEqual(["format", "id"]);
    for (const [path, value] of [
      ["trigger.kind", { trigger: {} }],
      ["trigger.expression", { trigger: { kind: "cron" } }],
      ["trigger.name", { trigger: { kind: "event" } }],
      ["grants.fs[0].access", { grants: { fs: [{ mount: "a" }] } }],
      ["grants.net[0].host", { grants: { net: [{}] } }],
      ["grants.secrets[0].header", { grants: { secrets: [{ name: "a", hosts: ["a.example"] }] } }],
      ["grants.kv.maxBytes", { grants: { kv: {} } }],
      ["retention.days", { retention: {} }],
    ] as const) {
      const found = problemsOf(read({ ...least, ...value })).find((problem) => problem.path === path);
      expect(found?.message).toMatch(/^is missing/);
    }
  });

  test("a schema's mistake is shown at its keyword", () => {
    const text = '{"format":1,"id":"a",\n"input":{"properties":{"a":{\n  "requred":["b"]}}}}';
    expect(problemsOf(parseManifest(text))).toMatchObject([
      { path: "input.properties.a.requred", line: 3, column: 3, suggestion: "required" },
    ]);
  });

  test.each([
    [{ fs: [{ mount: "a", access: "deny" }] }, "grants.fs[0].access"],
    [
      {
        fs: [
          { mount: "a", access: "read" },
          { mount: "b", access: "protect" },
        ],
      },
      "grants.fs[1].access",
    ],
    [
      {
        fs: [
          { mount: "a", access: "read" },
          { mount: "a", access: "read" },
        ],
      },
      "grants.fs[1]",
    ],
    [{ net: [{ host: "A.example" }, { host: "a.example." }] }, "grants.net[1]"],
    [{ secrets: [{ name: "a", hosts: ["a.example"], header: "x-a" }] }, "grants.secrets[0]"],
    [{ flows: ["a", "b", "a"] }, "grants.flows[2]"],
  ])("grants that make no sense together: %j", (grants, path) => {
    expect(problemsOf(read({ ...least, grants })).map((problem) => problem.path)).toContain(path);
  });
});

describe("hostile texts", () => {
  test("a key written twice is refused at every level, at its second place", () => {
    const places: readonly [string, string][] = [
      ['{"id":"a","format":1,"id":"b"}', "id"],
      ['{"format":1,"id":"a","grants":{"kv":null,"kv":null}}', "grants.kv"],
      [
        '{"format":1,"id":"a","grants":{"fs":[{"mount":"a","access":"read","access":"write"}]}}',
        "grants.fs[0].access",
      ],
      ['{"format":1,"id":"a","grants":{"net":[{"host":"a","host":"*"}]}}', "grants.net[0].host"],
      ['{"format":1,"id":"a","input":{"type":"string","type":"object"}}', "input.type"],
      ['{"format":1,"id":"a","input":{"properties":{"x":true,"x":false}}}', "input.properties.x"],
      ['{"format":1,"id":"a","input":{"default":{"x":[{"y":1,"y":2}]}}}', "input.default.x[0].y"],
      ['{"format":1,"id":"a","budgets":{"cpuMs":1,"c\\u0070uMs":2}}', "budgets.cpuMs"],
    ];
    for (const [text, path] of places) {
      const [problem] = problemsOf(parseManifest(text));
      expect(problem).toMatchObject({ path, line: 1 });
      expect(problem?.message).toContain("is written twice");
      const key = path.split(".").at(-1)?.slice(0, 1) ?? "";
      expect(text.slice((problem?.column ?? 0) - 1)).toMatch(new RegExp(`^"[${key}]`));
    }
  });

  test("__proto__ is an unknown key anywhere, and nothing is polluted", () => {
    for (const text of [
      '{"format":1,"id":"a","__proto__":{"polluted":1}}',
      '{"format":1,"id":"a","grants":{"__proto__":{"polluted":1}}}',
      '{"format":1,"id":"a","input":{"properties":{"__proto__":{"polluted":1}}}}',
      '{"format":1,"id":"a","input":{"default":{"\\u005f_proto__":{"polluted":1}}}}',
    ]) {
      expect(problemsOf(parseManifest(text)).map((problem) => problem.message)).toEqual([
        'unknown key "__proto__"; remove it',
      ]);
    }
    expect("polluted" in {}).toBe(false);
  });

  test("size is counted in bytes and before anything is read", () => {
    const fill = (bytes: number): string => {
      const text = '{"format":1,"id":"a"}';
      return text + " ".repeat(bytes - text.length);
    };
    expect(parseManifest(fill(manifestBytesMax)).ok).toBe(true);
    expect(problemsOf(parseManifest(fill(manifestBytesMax + 1)))[0]?.message).toContain("65537 bytes");
    expect(problemsOf(parseManifest("ä".repeat(40_000)))[0]?.message).toContain("80000 bytes");
    expect(problemsOf(parseManifest(new Uint8Array(manifestBytesMax + 1)))[0]?.message).toContain(
      "65537 bytes",
    );
  });

  test.each([
    ["[".repeat(60_000), "levels"],
    ['{"a":'.repeat(10_000), "levels"],
    [`{"format":1,"id":"a","input":{"default":${"[".repeat(200)}${"]".repeat(200)}}}`, "levels"],
    ["/*".repeat(30_000), "not JSON"],
    ['"'.repeat(60_001), "quotation mark"],
    [`{"${"\\".repeat(60_000)}`, "quotation mark"],
    [`{"a":${"9".repeat(60_000)}}`, "too large"],
    ["", "not JSON"],
    ["\0", "control character"],
    ['{"a":"b\nc"}', "quotation mark"],
    ["{'a':1}", "not JSON"],
    ['{"a":1,}', "not JSON"],
    ['{"a":NaN}', "not JSON"],
    ['{"a":01}', "not JSON"],
    ['{"a":1} {}', "not JSON"],
    ['{"a":1e999}', "too large"],
  ])("%.40j… is refused with one clear reason", (text, reason) => {
    const problems = problemsOf(parseManifest(text));
    expect(problems[0]?.message).toContain(reason);
    expect(problems[0]?.message.length).toBeLessThan(200);
  });

  test("brackets in strings and comments do not count as nesting", () => {
    const text = `{"format":1,"id":"a","description":"${"[{".repeat(100)}"}/*${"[".repeat(100)}*/ //${"[".repeat(100)}`;
    expect(parseManifest(text).ok).toBe(true);
  });

  test.each([[[0xff, 0xfe]], [[0x22, 0xc3, 0x28, 0x22]], [[0xed, 0xa0, 0x80]], [[0xc0, 0x80]]])(
    "bytes that are not UTF-8 are refused: %j",
    (bytes) => {
      expect(problemsOf(parseManifest(Uint8Array.from(bytes)))[0]?.message).toContain("not UTF-8");
    },
  );

  test.each([
    ["\\u202e", "U+202E"],
    ["\u202e", "U+202E"],
    ["\\u2066", "U+2066"],
    ["\\u0000", "U+0000"],
    ["\\u001b", "U+001B"],
    ["\u0085", "U+0085"],
    ["\\ud800", "U+D800"],
    ["\\udc00x", "U+DC00"],
    ["\ud800", "U+D800"],
    ["e\\u0301", "normal form"],
    ["\u212b", "normal form"],
  ])("text with %j is refused as a value and as a key, with its place", (odd, what) => {
    const asValue = problemsOf(parseManifest(`{"format":1,"id":"a",\n "description":"x${odd}"}`));
    const asKey = problemsOf(
      parseManifest(`{"format":1,"id":"a",\n "input":{"properties":{"x${odd}":true}}}`),
    );
    for (const problems of [asValue, asKey]) {
      expect(problems).toHaveLength(1);
      expect(problems[0]?.message).toContain(what);
      expect(problems[0]?.line).toBe(2);
    }
  });

  test("text in the writing of people is let in", () => {
    const description = "Grüße, שלום, 価格 👩‍💻 — “quoted”";
    expect(read({ ...least, description })).toMatchObject({ ok: true, manifest: { description } });
  });

  test("problems come sorted, bounded in number, each on one printable line", () => {
    const hostile = Object.fromEntries(
      Array.from({ length: 500 }, (_, index) => [`k${index}\u2028\u200b`, 1]),
    );
    const problems = problemsOf(read({ ...least, ...hostile }));
    expect(problems.length).toBe(50);
    for (const problem of problems) {
      const line = formatManifestProblem(problem);
      expect(line).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
      expect(line.length).toBeLessThan(1_000);
    }
    const keys = problems.map(({ line, column }) => line * 10_000 + column);
    expect(keys).toEqual([...keys].sort((a, b) => a - b));
  });

  test("one line for a problem: file, place, path, what, suggestion", () => {
    const [problem] = problemsOf(
      parseManifest('{"format":1,\n"idd":"a","id":"a"}', { label: "flows/a/flow.json" }),
    );
    expect(problem && formatManifestProblem(problem)).toMatch(
      /^flows\/a\/flow\.json:2:1: idd: unknown key "idd"; the keys here are .*; did you mean "id"\?$/,
    );
  });

  test("no text makes it throw, and what it reads is what JSON.parse reads", () => {
    const piece = fc.constantFrom(
      ...'{}[],:"\\/*\n 1-e.'.split(""),
      '"format":1',
      '"id":"a"',
      '"grants":',
      '"__proto__":',
      "true",
      "null",
      "//",
      "\u202e",
      "\ud800",
    );
    fc.assert(
      fc.property(fc.string({ unit: piece, maxLength: 40 }), (text) => {
        const result = parseManifest(text);
        expect(result.ok || result.problems.length > 0).toBe(true);
        if (result.ok) expect(result.manifest.id).toBe("a");
      }),
      { numRuns: 3_000 },
    );
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), (text) => {
        const result = parseManifest(text);
        expect(result.ok).toBe(false);
        expect(problemsOf(result)[0]?.message).not.toContain("not JSON");
      }),
    );
  });
});
