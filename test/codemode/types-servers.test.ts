/** Types of real MCP servers' tools: the same text as before for each, and all of it content with the compiler. */

import { fileURLToPath } from "node:url";
import { compactTypes, searchTools, toolDeclarations } from "@flowcell/codemode";
import { describe, expect, test } from "vitest";
import { typeErrors } from "./types-compiler.js";
import { listedServer, serverNames, setOfServers } from "./types-servers.js";

const total = serverNames.flatMap((name) => listedServer(name).tools).length;

test("there are more than 200 tools, from packages that may be handed on", () => {
  expect(total).toBeGreaterThanOrEqual(200);
  for (const name of serverNames) {
    const { package: from, version, licence } = listedServer(name);
    expect(from).toMatch(/^[@a-z]/);
    expect(version).toMatch(/^\d+\.\d+\.\d+/);
    expect(["MIT", "Apache-2.0", "ISC"]).toContain(licence);
  }
});

describe("declarations", () => {
  test.each(serverNames)("of %s are what they were", async (name) => {
    const text = toolDeclarations(setOfServers([name]).set, { globals: false });
    const file = fileURLToPath(new URL(`./declarations/${name}.txt`, import.meta.url));
    await expect(text).toMatchFileSnapshot(file);
  });

  test("say everything of every schema: none had to be cut", () => {
    expect(setOfServers(serverNames).warnings).toEqual([]);
  });

  test("do not depend on the order of tools", () => {
    const forth = setOfServers(serverNames).set;
    const back = { tools: forth.tools.toReversed(), get: forth.get };
    expect(toolDeclarations(back)).toBe(toolDeclarations(forth));
    expect(compactTypes(back, { tokensMax: 20_000 })).toEqual(compactTypes(forth, { tokensMax: 20_000 }));
  });

  test("type-check, whole, in one line a tool, as names, and for every hit of a search", async () => {
    const { set } = setOfServers(serverNames);
    const whole = toolDeclarations(set);
    const lines = compactTypes(set, { tokensMax: 25_000 });
    const mixed = compactTypes(set, { tokensMax: 6_000 });
    const names = compactTypes(set, { tokensMax: 1_000 });
    expect([lines.form, mixed.form, names.form]).toEqual(["lines", "mixed", "names"]);
    const hits = searchTools(set, "create a page, list files, delete, query or click", { limit: 50 });
    expect(hits).toHaveLength(50);
    const signatures = hits.map(({ signature }, index) => {
      return `declare function hit${index}${signature.slice(signature.indexOf("("))};\n`;
    });
    const files = {
      "whole/types.d.ts": whole,
      "whole/script.ts": "export const nothing = github.list_issues;\n",
      "lines/types.d.ts": lines.text,
      "mixed/types.d.ts": mixed.text,
      "names/types.d.ts": names.text,
      "hits/types.d.ts": hits.map(({ declaration }) => declaration).join(""),
      "hits/signatures.d.ts": signatures.join(""),
    };
    expect(await typeErrors(files)).toEqual([]);
  });

  test("know required from optional, right from wrong", async () => {
    const { set } = setOfServers(["github", "kubernetes"]);
    const script = [
      'github.list_issues({ owner: "a", repo: "b", state: "open" });',
      'github.list_issues({ owner: "a" });',
      'github.list_issues({ owner: "a", repo: "b", state: "opened" });',
      "kubernetes.cleanup();",
      "kubernetes.cleanups();",
    ];
    const errors = await typeErrors({
      "one/types.d.ts": toolDeclarations(set),
      "one/script.ts": `${script.join("\n")}\nexport {};\n`,
    });
    expect(errors.map((error) => /\((\d+),/.exec(error)?.[1])).toEqual(["2", "3", "5"]);
  });
});

describe("a budget of tokens", () => {
  const { set } = setOfServers(serverNames);

  test.each([64, 200, 1_000, 4_000, 16_000, 64_000, 200_000])("of %i is kept", (tokensMax) => {
    const { text, tokens } = compactTypes(set, { tokensMax, more: "Call search to see more." });
    expect(text.length).toBeLessThanOrEqual(tokensMax * 4);
    expect(tokens).toBeLessThanOrEqual(tokensMax);
    expect(text).toContain("tool");
  });

  test("that is large shows everything, a small one every server with its count, and how to see more", () => {
    const more = "Call search to see more.";
    expect(compactTypes(set, { tokensMax: 200_000, more }).text).toBe(toolDeclarations(set));
    const { text } = compactTypes(set, { tokensMax: 1_000, more });
    expect(text).toContain(more);
    for (const name of serverNames) {
      const namespace = name.replaceAll("-", "_");
      expect(text).toContain(`// ${namespace} (${listedServer(name).tools.length}): `);
    }
  });

  test("between them gives every tool a line", () => {
    const { text, form } = compactTypes(set, { tokensMax: 25_000 });
    expect(form).toBe("lines");
    expect(text.match(/^ .*\bfunction \w+\(.*;$/gm)).toHaveLength(total);
  });

  test.each([0, 63, 1.5, Number.NaN])("of %d is refused", (tokensMax) => {
    expect(() => compactTypes(set, { tokensMax })).toThrow(RangeError);
  });
});
