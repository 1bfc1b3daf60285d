// The command line without a worker: usage, inputs, texts for people.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { readPem, readSettings } from "../owner/settings.js";
import { notStarted, type RunResult } from "../result.js";
import { commands } from "./commands.js";
import { failureText, logText, summaryText, valueText } from "./human.js";
import { readInput } from "./input.js";
import { runProgram } from "./program.js";
import { readBounded } from "./read-file.js";
import { poolEventText } from "./trace.js";
import type { Typed } from "./typed.js";

const folder = mkdtempSync(join(tmpdir(), "cli-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Answered {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** What reached the commands for flows. */
const flowsTyped: { readonly name: string; readonly typed: Typed }[] = [];

async function type(...args: readonly string[]): Promise<Answered> {
  let out = "";
  let err = "";
  const streams = {
    out: (text: string) => {
      out += text;
    },
    err: (text: string) => {
      err += text;
    },
    outIsTerminal: false,
  };
  const code = await runProgram(args, {
    version: "1.2.3",
    streams,
    doctor: async () => 0,
    exec: async () => 0,
    mcp: async () => 0,
    flows: async (name, typed) => {
      flowsTyped.push({ name, typed });
      return 0;
    },
  });
  return { code, out, err };
}

describe("usage", () => {
  test.each([
    [["rnu"], "flowcell: unknown command 'rnu'; did you mean run?\n"],
    [["run"], "flowcell: missing required argument 'PATH'\n"],
    [["run", "a.js", "b.js"], "flowcell: too many arguments for 'run'. Expected 1 argument but got 2.\n"],
    [["run", "a.js", "--jsn"], "flowcell: unknown option '--jsn'; did you mean --json?\n"],
    [["run", "a.js", "--aprove"], "flowcell: unknown option '--aprove'; did you mean --approve?\n"],
    [
      ["run", "a.js", "--approve"],
      "flowcell: --approve is for flows, and a.js is no folder with a flow.json: a script file is given no files, hosts or secrets\n",
    ],
    [["start"], "flowcell: missing required argument 'FLOW'\n"],
    [["apprve", "x"], "flowcell: unknown command 'apprve'; did you mean approve?\n"],
    [["serve", "--port", "1"], /^flowcell: unknown option '--port'/],
    [["run", "a.js", "--limit"], "flowcell: option '--limit <name=value>' argument missing\n"],
    [
      ["run", "a.js", "--limit", "timeout=1"],
      'flowcell: unknown limit "timeout": did you mean wallMs (milliseconds)?\n',
    ],
    [
      ["run", "a.js", "--limit", "cpuMs"],
      'flowcell: limit "cpuMs" is not name=value, for example cpuMs=500\n',
    ],
    [["run", "a.js", "--input", "{"], /^flowcell: --input is not JSON: .*\n$/],
    [["run", "a.js", "--input", "@nope.json"], "flowcell: --input nope.json: no such file\n"],
    [
      ["run", "a.js", "--limit", "cpuMs=5", "--limit", "cpuMs=6"],
      "flowcell: --limit cpuMs is given twice; give it once\n",
    ],
    [["run", "a.js", "--input", "1", "--input", "2"], "flowcell: --input is given twice; give it once\n"],
    [["start", "a", "--key", "1", "--key=2"], "flowcell: --key is given twice; give it once\n"],
    [["doctr"], "flowcell: unknown command 'doctr'; did you mean doctor?\n"],
  ])("%j is refused in one line with exit code 2", async (args, text) => {
    const typed = await type(...args);
    expect(typed).toMatchObject({ code: 2, out: "" });
    if (typeof text === "string") expect(typed.err).toBe(text);
    else expect(typed.err).toMatch(text);
  });

  test("a mistake with --json is one JSON object on standard output", async () => {
    for (const args of [
      ["run", "--json"],
      ["run", "a.js", "--json", "--limit", "x=1"],
      ["run", "--json", "--nope", "a.js"],
    ]) {
      const { code, out, err } = await type(...args);
      expect(code).toBe(2);
      expect(JSON.parse(out)).toMatchObject({
        ok: false,
        status: "invalid_input",
        error: { message: expect.any(String) },
      });
      expect(err.trim().split("\n")).toHaveLength(1);
    }
  });

  test("nothing typed shows the help on standard error", async () => {
    const { code, out, err } = await type();
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain("Usage: flowcell");
  });

  test.each([["--help"], ["run", "--help"], ["doctor", "--help"]])(
    "help of %j has an example",
    async (...args) => {
      const { code, out, err } = await type(...args);
      expect({ code, err }).toEqual({ code: 0, err: "" });
      expect(out).toMatch(/Examples?:\n {2}flowcell /);
    },
  );

  test("the version", async () => {
    expect(await type("--version")).toEqual({ code: 0, out: "1.2.3\n", err: "" });
  });

  test("a missing file is refused without a stack", async () => {
    const { code, out, err } = await type("run", join(folder, "nope.js"));
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toBe("invalid_input (request): nope.js: no such file\n");
  });

  test("a syntax error shows line and caret with exit code 1", async () => {
    writeFileSync(join(folder, "bad.js"), "export default () => {\n  const a = b c;\n}\n");
    const { code, err } = await type("run", join(folder, "bad.js"));
    expect(code).toBe(1);
    expect(err).toBe(
      'script_error (syntax): bad.js:2:15: Expected ";" but found "c"\n    2 |   const a = b c;\n                      ^\n',
    );
  });
});

describe("--input", () => {
  const file = (name: string, text: string | Uint8Array): string => {
    writeFileSync(join(folder, name), text);
    return `@${join(folder, name)}`;
  };

  test("is JSON, a parsed JSON file, or the text of another file", () => {
    expect(readInput('{"a":[1]}', 100)).toEqual({ a: [1] });
    expect(readInput(file("a.json", '{"b":2}'), 100)).toEqual({ b: 2 });
    expect(readInput(file("a.csv", "x;y\n"), 100)).toBe("x;y\n");
    expect(readInput(undefined, 100)).toBeUndefined();
  });

  test.each([
    ["a word", () => "hello", `For a text write '"hello"', for a file @hello`],
    ["a broken JSON file", () => file("b.json", "{"), "is not JSON"],
    ["a file that is too large", () => file("c.txt", "x".repeat(200)), "the limit is 100"],
    ["a file that is not text", () => file("d.txt", new Uint8Array([0xff])), "not UTF-8"],
    ["a folder", () => `@${folder}`, "is a folder"],
    ["no name", () => "@", "needs the name of a file"],
    ["a device that never ends", () => "@/dev/zero", "--input /dev/zero: is a device"],
    ["a hyphen that was meant as standard input", () => "-", "write @-"],
  ])("refuses %s", (_what, argument, text) => {
    expect(() => readInput(argument(), 100)).toThrow(text);
  });
});

describe("files that say nothing of their size", () => {
  test("are read to their end", () => {
    expect(readInput("@/proc/self/limits", 1_000_000)).toContain("Max open files");
    const pipe = join(folder, "short.fifo");
    execFileSync("mkfifo", [pipe]);
    spawn("/bin/sh", ["-c", `echo '[1]' > "${pipe}"`]);
    expect(readInput(`@${pipe}`, 100)).toBe("[1]\n");
  });

  test("are read no further than the limit", () => {
    const pipe = join(folder, "endless.fifo");
    execFileSync("mkfifo", [pipe]);
    const writer = spawn("/bin/sh", ["-c", `exec yes > "${pipe}"`]);
    try {
      expect(() => readInput(`@${pipe}`, 100_000)).toThrow(
        "has more than 100000 bytes; the limit is 100000 (--limit inputBytes=N asks for more)",
      );
    } finally {
      writer.kill("SIGKILL");
    }
  });

  test("are refused where the name is kept, and not waited for", () => {
    const pipe = join(folder, "nobody.fifo");
    execFileSync("mkfifo", [pipe]);
    const read = (): unknown => readBounded(pipe, { bytesMax: 100, pipes: false });
    expect(read).toThrow("is not a regular file");
    expect(() => readSettings(pipe)).toThrow("is not a regular file");
    expect(() => readSettings("/dev/zero")).toThrow("is a device");
    expect(() => readPem("/dev/zero")).toThrow("is a device");
  });
});

describe("for people", () => {
  test("a script cannot steer the terminal", () => {
    const evil = "\u001b[2Jwiped\u0007\u009b1A";
    const line = { level: "log", time: "", text: `${evil}\nsecond` } as const;
    const failed = notStarted("r", "script_error", {
      code: "uncaught",
      name: evil,
      message: evil,
      stack: `${evil}: ${evil}\n    at ${evil} (a.js:1:1)`,
      cause: { name: evil, message: evil, stack: evil },
    });
    const shown = logText(line) + failureText(failed) + valueText(evil, true) + valueText({ evil }, true);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
    expect(shown).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
    expect(logText(line)).toContain("\n      second\n");
  });

  test("the source line stands after the frame that it belongs to", () => {
    const failed = notStarted("r", "script_error", {
      code: "uncaught",
      name: "Error",
      message: "m",
      stack: "Error: m\n    at map (native)\n    at boom (a.js:3:9)\n    at default (a.js:1:1)",
      frame: "    3 | throw\n        ^",
    });
    expect(failureText(failed)).toContain(
      "    at map (native)\n    at boom (a.js:3:9)\n    3 | throw\n        ^\n    at default (a.js:1:1)\n",
    );
  });

  test("an error's own code stands beside the reason", () => {
    const failed = notStarted("r", "script_error", { code: "uncaught", ownCode: "E_X", message: "m" });
    expect(failureText(failed)).toMatch(/^script_error \(uncaught, its code E_X\): m\n/);
  });

  test("--trace tells of every event of the pool what there is to tell, a bug with its stack", () => {
    const text = poolEventText({ kind: "bug", pid: 7, error: new TypeError("lost its way") });
    expect(text).toMatch(/^worker 7: TypeError: lost its way\n {4}at /);
    expect(poolEventText({ kind: "lost", pid: 7, flow: null, message: "it ended" })).toBe(
      "worker 7: it ended",
    );
    expect(
      poolEventText({
        kind: "violation",
        pid: 7,
        flow: null,
        verdict: { status: "violation", reason: "protocol", message: "a frame too many" },
      }),
    ).toBe("worker 7: violation (protocol): a frame too many");
  });

  test.each([
    ["a text as it is", "a\nb", "a\nb\n"],
    ["nothing for undefined", undefined, ""],
    ["JSON for what JSON can hold", { a: [1, null] }, '{\n  "a": [\n    1,\n    null\n  ]\n}\n'],
    [
      "what JSON cannot hold as JavaScript writes it",
      [10n, new Map([["k", new Date(0)]])],
      "[ 10n, Map(1) { 'k' => 1970-01-01T00:00:00.000Z } ]\n",
    ],
    ["undefined inside a value", { a: undefined }, "{ a: undefined }\n"],
  ])("prints %s", (_what, value, text) => {
    expect(valueText(value, false)).toBe(text);
  });

  test("an exhausted budget names the option that raises it, an unknown call its key", () => {
    const failed = {
      ...notStarted("r", "budget_exceeded", { code: "wall", message: "60000 of 60000 ms" }),
      started: true,
      calls: [
        {
          position: 3,
          name: "pay",
          state: "unknown" as const,
          durationMs: 1,
          inputBytes: 1,
          outputBytes: 0,
          idempotencyKey: "key-3",
        },
      ],
    };
    expect(failureText(failed)).toBe(
      "budget_exceeded (wall): 60000 of 60000 ms\nask for more with --limit wallMs=N\n" +
        "call 3 pay was started and its outcome is unknown (idempotency key key-3)\n",
    );
  });

  test("the summary tells cost and confinement", () => {
    const result: RunResult = {
      ...notStarted("r", "internal", { code: "bug", message: "" }),
      ok: true,
      status: "completed",
      value: 1,
      started: true,
      usage: {
        cpuMs: 1.25,
        wallMs: 2500,
        heapPeakBytes: 5 * 1024 * 1024,
        hostCalls: 1,
        bytesIn: 0,
        bytesOut: 0,
        queuedMs: 0,
      },
      warnings: [{ code: "unhandled_rejection", message: "lost" }],
    };
    expect(summaryText(result)).toBe(
      "warning (unhandled_rejection): lost\ncompleted in 2.50 s, 1.3 ms CPU, 5.0 MiB heap, 1 host call\n",
    );
  });
});

describe("the table of commands", () => {
  test("every command has help with an example, and every option a text", async () => {
    for (const row of commands) {
      const { code, out } = await type(row.name, "--help");
      expect(code, row.name).toBe(0);
      expect(out, row.name).toMatch(/\nExamples?:\n {2}(?:echo .* \| )?flowcell /);
      for (const example of row.examples) expect(out, row.name).toContain(`  ${example}`);
      for (const { flags } of row.options) expect(out, `${row.name} ${flags}`).toContain(flags.split(" ")[0]);
    }
  });

  test("the list of commands has each with its line", async () => {
    const { out } = await type("--help");
    for (const { name, summary } of commands) {
      expect(out).toMatch(new RegExp(`\\n {2}${name}[ |]`));
      expect(out.replace(/\s+/g, " ")).toContain(summary);
    }
  });

  test("what was typed reaches the command by name", async () => {
    flowsTyped.length = 0;
    await type("start", "prices", "--input", "1", "--no-wait", "--data", "/d");
    await type("approve", "prices", "--mount", "a=b", "--mount", "c=d");
    await type("run", folder);
    const [start, approve, run] = flowsTyped;
    expect(start?.name).toBe("start");
    expect(start?.typed.argument(0)).toBe("prices");
    expect([start?.typed.text("input"), start?.typed.wait, start?.typed.text("data")]).toEqual([
      "1",
      false,
      "/d",
    ]);
    expect(approve?.typed.list("mount")).toEqual(["a=b", "c=d"]);
    expect([approve?.typed.wait, approve?.typed.list("secret")]).toEqual([true, []]);
    expect([run?.name, run?.typed.argument(0)]).toEqual(["run", folder]);
  });
});
