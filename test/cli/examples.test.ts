// Runs every example as its page and its own first lines say, through the real command line and a real worker.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { flowcell, flowcellJson, root } from "./run-cli.js";

const examples = join(root, "examples");

/** Paths of every script below examples/ that is an entry; flows have a test of their own. */
function entries(folder = ""): string[] {
  return readdirSync(join(examples, folder)).flatMap((name) => {
    const path = folder === "" ? name : `${folder}/${name}`;
    if (path === "flows") return [];
    if (statSync(join(examples, path)).isDirectory()) return entries(path);
    return /\.[jt]s$/.test(name) && readFileSync(join(examples, path), "utf8").includes("export default")
      ? [path]
      : [];
  });
}

/** The command lines in the comment at the head of an example. */
function headCommands(path: string): string[] {
  const head = readFileSync(join(examples, path), "utf8").split("\n\n")[0] ?? "";
  return [...head.matchAll(/^\/\/ {3}(flowcell run .*)$/gm)].map((match) => match[1] ?? "");
}

/** Words of a command as a shell would pass them; the examples use plain words and single quotes. */
function words(command: string): string[] {
  return [...command.matchAll(/'([^']*)'|(\S+)/g)].map((match) => match[1] ?? match[2] ?? "").slice(1);
}

describe("every example", () => {
  test.each(entries())("%s says at its head how to run it, and the page lists it", (path) => {
    const commands = headCommands(path);
    expect(commands.length).toBeGreaterThan(0);
    const page = readFileSync(join(examples, "README.md"), "utf8");
    expect(page).toContain(`\n| \`${path}\` `);
    expect(commands.some((command) => page.includes(`\`${command}\``))).toBe(true);
  });

  test.each(entries().flatMap(headCommands))("%s ends as it should", async (command) => {
    const { code, json } = await flowcellJson([
      ...words(command).filter((word) => word !== "--trace"),
      "--json",
    ]);
    const expected = command.includes("limits.js") ? 4 : command.includes("trace-an-error") ? 1 : 0;
    expect({ command, code, error: json.error }).toMatchObject({ command, code: expected });
    expect(json.confinement).not.toBeNull();
  });
});

describe("the results that the page promises", () => {
  test("summarise-csv.js", async () => {
    const { json } = await flowcellJson([
      "run",
      "examples/summarise-csv.js",
      "--input",
      "@examples/data/UnicodeData.txt",
      "--json",
    ]);
    expect(json.value).toEqual({
      rows: 34924,
      categories: 29,
      largest: { Lo: 17273, So: 6634, Ll: 2233, Mn: 1985, Lu: 1831 },
      longestName: "BOX DRAWINGS LIGHT DIAGONAL UPPER CENTRE TO MIDDLE LEFT AND MIDDLE RIGHT TO LOWER CENTRE",
      arrows: 626,
    });
    expect(json.logs).toMatchObject([{ level: "log", text: "read 34924 rows of 29 categories" }]);
  });

  test("pricing-rule.js", async () => {
    const { json } = await flowcellJson(["run", "examples/pricing-rule.js", "--json"]);
    expect(json.value).toEqual({
      lines: [
        { sku: "tea", quantity: 12, percent: 5, cents: 5130 },
        { sku: "cup", quantity: 2, percent: 0, cents: 2500 },
      ],
      goods: 7630,
      member: 229,
      shipping: 0,
      total: 7401,
    });
  });

  test("text-report.js prints its text and nothing else on standard output", async () => {
    const { out } = await flowcell(["run", "examples/text-report.js"]);
    expect(out).toBe(
      [
        "Tickets by team",
        "",
        "Team      Open  Closed  Done",
        "--------  ----  ------  ----",
        "Mobile      25      20  44 %",
        "Payments    12      48  80 %",
        "Search       3      31  91 %",
        "All         40      99  71 %",
        "",
      ].join("\n"),
    );
  });

  test("fan-out.js", async () => {
    const { json } = await flowcellJson(["run", "examples/fan-out.js", "--json"]);
    expect(json.value).toEqual({
      jobs: 20,
      oneByOneMs: 800,
      faster: true,
      refused: "invalid_arguments",
      late: "gave up",
    });
    expect(json.calls).toHaveLength(22);
  });

  test("invoices/main.ts", async () => {
    const { json } = await flowcellJson(["run", "examples/invoices/main.ts", "--json"]);
    expect(json.value).toEqual({
      lines: ["3 × Lamp: 149.70 EUR", "10 × Cable: 75.00 EUR"],
      net: "224.70 EUR",
      tax: "42.69 EUR",
      total: "267.39 EUR",
      rate: "full",
    });
  });

  test.each([
    ["cpu", ["--limit", "cpuMs=200"]],
    ["memory", []],
    ["stack", []],
    ["wall", ["--limit", "wallMs=300"]],
  ])("limits.js ends with %s", async (code, limits) => {
    const way = code === "wall" ? "wait" : code;
    const { json } = await flowcellJson([
      "run",
      "examples/limits.js",
      "--input",
      JSON.stringify(way),
      ...limits,
      "--json",
    ]);
    expect(json).toMatchObject({ ok: false, status: "budget_exceeded", error: { code } });
    expect(json.logs).toMatchObject([{ text: `trying ${way}` }]);
  });

  test("trace-an-error.ts names its own lines", async () => {
    const { json } = await flowcellJson(["run", "examples/trace-an-error.ts", "--json"]);
    const lineOf = (text: string): number =>
      readFileSync(join(examples, "trace-an-error.ts"), "utf8")
        .split("\n")
        .findIndex((line) => line.includes(text)) + 1;
    expect(json.error).toMatchObject({
      name: "Error",
      message: "sensor cellar is unusable",
      place: { file: "examples/trace-an-error.ts", line: lineOf("is unusable") },
      cause: {
        name: "TypeError",
        message: '"n/a" is not a temperature',
        stack: expect.stringContaining(
          `at parse (examples/trace-an-error.ts:${lineOf("is not a temperature")}:`,
        ),
      },
    });
    expect(json.logs).toHaveLength(2);
  });
});
