// What a script is told: exact texts of errors and warnings, in the words of a codemode, with and without a tool that asks.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Codemode, codemodePrompt, createCodemode } from "../../packages/codemode/src/index.js";

const paths = { read_file: "a", read_text_file: "b", edit_file: "c" };
const named = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, () => name] as const));
const tools = {
  ...named(["add"]),
  every_thing: named(Array.from({ length: 20 }, (_, n) => `thing_${n}`)),
  files: named(Object.keys(paths)),
  shop: {
    look: {
      description: "Looks.",
      inputSchema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
      execute: () => 1,
    },
  },
};
const pay = {
  description: "Pays.",
  inputSchema: { type: "object", properties: { cents: { type: "integer" } }, required: ["cents"] },
  needsApproval: ({ cents }: { cents: number }) => cents > 100,
  execute: () => {
    throw new Error("no money");
  },
};

describe.each(["direct", "asking"])("%s", (kind) => {
  let codemode: Codemode;
  beforeAll(async () => {
    codemode = await createCodemode({ tools: kind === "direct" ? tools : { ...tools, bank: { pay } } });
  });
  afterAll(() => codemode.close());

  async function failure(code: string) {
    const result = await codemode.execute(code);
    if (result.ok) throw new Error(`completed with ${String(result.value)}`);
    expect(result.error.stack ?? "").not.toContain("zz$ask");
    return result.error;
  }

  test.each([
    [
      "await files.raed_file({})",
      "files.raed_file is not a tool here. Did you mean files.read_file? There are files.read_file, files.read_text_file, files.edit_file.",
    ],
    [
      "await tools.read_text_file({})",
      "tools.read_text_file is not a tool here. Did you mean files.read_text_file? There are tools.add.",
    ],
    [
      "await every_thing.zzz()",
      `every_thing.zzz is not a tool here. There are ${Array.from(
        { length: 12 },
        (_, n) => `every_thing.thing_${n}`,
      )
        .sort()
        .join(", ")} and 8 more.`,
    ],
  ])("%s names what there is", async (code, message) => {
    const error = await failure(code);
    if (code.includes("every_thing")) {
      expect(error.message).toMatch(
        /^every_thing\.zzz is not a tool here\. There are every_thing\.\w+(, every_thing\.\w+){11} and 8 more\.$/,
      );
      return;
    }
    expect(error.message.split(" There are ")[0]).toBe(message.split(" There are ")[0]);
    expect(new Set(listOf(error.message))).toEqual(new Set(listOf(message)));
  });

  test("an unknown namespace says which there are", async () => {
    const { name, message, stack } = await failure("return await file.read_file({})");
    const bank = kind === "direct" ? "" : ", bank";
    const text = `file is not defined; the namespaces of tools are tools, every_thing, files, shop${bank}`;
    expect([name, message]).toEqual(["ReferenceError", text]);
    expect(stack).toMatch(new RegExp(`^ReferenceError: ${text.replaceAll(".", "\\.")}\n`));
  });

  test.each([
    [
      "await fetch('https://example.com')",
      /^fetch is not available: there is no network here; call a tool: \w/,
    ],
    ["require('fs')", /^require is not available: there is no module here; call a tool: \w/],
    [
      "module.exports = 1",
      /^module is not defined: there are no modules here: a script is the body of an async function, and returns its result$/,
    ],
    ["new XMLHttpRequest()", /^XMLHttpRequest is not defined: there is no network here; call a tool$/],
    ["const fs = await import('fs')", /^script\.js:1:18: cannot import: a script has no modules/],
    ["const x = 'fs'; await import(x)", /^script\.js:1:23: cannot import: a script has no modules/],
    ["return [1,", /^script\.js:1:11: unexpected end of the script; a bracket or text is not closed$/],
    [
      "await tools.add(1,2",
      /^script\.js:1:20: unexpected end of the script; a bracket or text is not closed$/,
    ],
    ["if (true) {\n  await tools.add(1, 2)\n", /^script\.js:2:24: unexpected end of the script/],
    ["return `a", /unexpected end of the script|[Uu]nterminated/],
    ["return 1 }", /^script\.js:1:1[01]: a bracket is closed here that the script did not open$/],
  ])("%s", async (code, message) => {
    const error = await failure(code);
    expect(error.message).toMatch(message);
    expect(error.message).not.toMatch(/__flowcell|granted/);
  });

  test("a script that asks whether something is there is not stopped", async () => {
    const code =
      "return [typeof fetch, typeof require, typeof module, 'nope' in tools, typeof files.read_file]";
    expect(await codemode.execute(code)).toMatchObject({
      value: ["function", "function", "undefined", false, "function"],
    });
  });

  test("a stack on the console has the author's positions, live and in the result, in TypeScript too", async () => {
    for (const code of [
      "try { nope() } catch (e) { console.log(e.stack); console.log(e) }",
      "const n: number = 1; try { nope(n) } catch (e) { console.log(e.stack); console.log(e) }",
    ]) {
      const live: string[] = [];
      const { logs } = await codemode.execute(code, { onLog: ({ text }) => live.push(text) });
      expect(logs.map(({ text }) => text)).toEqual(live);
      const columns = [...live.join("\n").matchAll(/script\.[jt]s:1:(\d+)/g)].map((found) =>
        Number(found[1]),
      );
      expect(columns.length).toBeGreaterThanOrEqual(2);
      for (const column of columns) expect(column).toBeLessThan(code.length);
    }
  });

  test("a full queue says which options it is about", async () => {
    const full = await createCodemode({ tools, maxWorkers: 1, queueMax: 0 });
    try {
      const stop = new AbortController();
      const busy = full.execute("await new Promise((r) => setTimeout(r, 60000))", { signal: stop.signal });
      const results = await Promise.all([1, 2, 3].map((n) => full.execute(`return ${n}`)));
      stop.abort();
      await busy;
      const message =
        "every worker is busy and 0 executions wait already (queueMax); try again later, or raise queueMax or maxWorkers";
      expect(results.map((result) => (result.ok ? "" : result.error.message))).toContain(message);
    } finally {
      await full.close();
    }
  });

  test("a script finds tools by words and reads their types", async () => {
    const code = `
      const found = await codemode.search("look at the shop");
      return [found[0].name, found[0].signature, await codemode.describe("shop.look"), codemode === tools]`;
    const result = await codemode.execute(code);
    expect(result).toMatchObject({
      ok: true,
      value: [
        "shop.look",
        expect.stringMatching(/^shop\.look\(input/),
        expect.stringContaining("function look("),
        true,
      ],
    });
    expect((await failure('await codemode.describe("shop.lok")')).message).toBe(
      'there is no tool "shop.lok"; did you mean shop.look?',
    );
    expect((await failure("await codemode.search()")).message).toMatch(/^codemode\.search takes words/);
    expect((await failure("await codemode.serch('x')")).message).toMatch(/^tools\.serch is not a tool here/);
  });

  test("a warning names a call as the script wrote it", async () => {
    const { warnings } = await codemode.execute("void files.read_file({}); return 1");
    const text = warnings.map(({ message }) => message).join("\n");
    expect(text).toContain("files.read_file");
    expect(text).not.toContain("host.");
  });

  test("what is wrong with an input is told of the tool, also by an error that nobody catches", async () => {
    expect((await failure("await shop.look({ n: 'x' })")).message).toMatch(/^shop\.look: /);
    expect((await failure("await shop.look({ n: () => 1 })")).message).toMatch(/^shop\.look\b/);
  });
});

describe("a tool that may ask", () => {
  test("is told by its own name in every error", async () => {
    const codemode = await createCodemode({ tools: { ...tools, bank: { pay } } });
    try {
      const code = `
        const seen = [];
        for (const input of [{ cents: "x" }, { cents: () => 1 }, { cents: 1 }])
          try { await bank.pay(input) } catch (e) { seen.push(e.message) }
        try { await bank.paay({}) } catch (e) { seen.push(e.message) }
        return seen`;
      const result = await codemode.execute(code);
      const seen: unknown = result.ok ? result.value : result.error;
      expect(seen).toEqual([
        expect.stringMatching(/^bank\.pay: .*cents/),
        expect.stringMatching(/^bank\.pay\b/),
        "no money",
        "bank.paay is not a tool here. Did you mean bank.pay? There are bank.pay.",
      ]);
      expect(JSON.stringify(seen)).not.toMatch(/zz\$ask|host\./);
    } finally {
      await codemode.close();
    }
  });
});

test("a program's own tools search and describe stay its own, and a namespace codemode is refused", async () => {
  const own = await createCodemode({ tools: { search: (text: string) => `own ${text}` } });
  try {
    expect(await own.execute("return await codemode.search('a')")).toMatchObject({ value: "own a" });
    expect(own.prompt).not.toContain("codemode.search(");
  } finally {
    await own.close();
  }
  await expect(createCodemode({ tools: { codemode: { add: () => 1 } } })).rejects.toThrow(/codemode/);
});

test("a prompt that has not every type tells how to see the others", async () => {
  const codemode = await createCodemode({ tools });
  try {
    expect(codemodePrompt(codemode.tools, { tokensMax: 800 })).toContain('await codemode.search("words")');
    expect(codemode.prompt).not.toContain("codemode.search");
  } finally {
    await codemode.close();
  }
});

function listOf(message: string): string[] {
  return (message.split(" There are ")[1] ?? "").replace(/\.$/, "").split(", ");
}

test("an error's own code survives, also through the journal; a tool's is the tool's", async () => {
  for (const more of [{}, { bank: { pay } }]) {
    const codemode = await createCodemode({
      tools: {
        ...more,
        boom: () => {
          throw Object.assign(new TypeError("boom"), { code: "E_BOOM" });
        },
      },
    });
    try {
      const own = await codemode.execute("throw Object.assign(new Error('m'), { code: 'E_X' })");
      expect(own).toMatchObject({ error: { code: "uncaught", ownCode: "E_X", name: "Error", message: "m" } });
      const none = await codemode.execute("throw new Error('m')");
      expect(none.ok ? {} : none.error).not.toHaveProperty("ownCode");
      const cause = await codemode.execute(
        "throw new Error('m', { cause: Object.assign(new Error('inner'), { code: 'E_IN' }) })",
      );
      expect(cause).toMatchObject({ error: { cause: { code: "E_IN" } } });
      expect(await codemode.execute("await tools.boom()")).toMatchObject({
        error: { code: "upstream", ownCode: "E_BOOM" },
      });
    } finally {
      await codemode.close();
    }
  }
});
