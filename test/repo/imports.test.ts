// Who may import whom. The table is the one declaration of package boundaries; packages' dependencies, their project
// references and every import in their sources are checked against it.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { repositoryRoot, sourceFiles } from "./files.js";

/** Package → the workspace packages its sources may import. `prelude` is compiled into the engine's image. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  native: ["protocol"],
  sandbox: ["native", "protocol"],
  pool: ["sandbox", "native", "protocol"],
  bundle: ["protocol"],
  manifest: ["protocol"],
  host: ["native", "manifest", "protocol"],
  journal: ["protocol"],
  flows: ["manifest", "host", "journal", "bundle", "protocol"],
  codemode: ["flows", "bundle", "pool", "host", "journal", "manifest", "sandbox", "protocol"],
  prelude: ["protocol"],
  flowcell: [
    "codemode",
    "flows",
    "bundle",
    "journal",
    "host",
    "manifest",
    "native",
    "pool",
    "sandbox",
    "protocol",
  ],
};

const importPattern = /(?:from\s+|import\s*\(\s*|import\s+)["']([^"']+)["']/g;

/** Comments are prose, and may say `from "…"`. */
const comments = /\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm;

function importsOf(text: string): string[] {
  return [...text.replaceAll(comments, "").matchAll(importPattern)].map((match) => match[1] ?? "");
}

interface Manifest {
  readonly name: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

function manifestOf(name: string): Manifest {
  // The workspace's own package.json, whose shape npm has already accepted.
  return JSON.parse(readFileSync(join(repositoryRoot, "packages", name, "package.json"), "utf8")) as Manifest;
}

describe("package boundaries", () => {
  test("every package has a row in the table and every row a package", () => {
    const packages = readdirSync(join(repositoryRoot, "packages")).sort();
    expect(packages).toEqual(Object.keys(mayImport).sort());
  });

  for (const [name, allowed] of Object.entries(mayImport)) {
    test(`${name} imports only ${allowed.length > 0 ? allowed.join(", ") : "no other package"}`, () => {
      const manifest = manifestOf(name);
      const declared = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies });
      const offences: string[] = [];
      for (const dependency of declared) {
        const sibling = dependency.match(/^@flowcell\/(.+)$/)?.[1];
        if (sibling !== undefined && !allowed.includes(sibling))
          offences.push(`package.json depends on ${sibling}`);
      }
      for (const file of sourceFiles(`packages/${name}/src`, [".ts"])) {
        // What only tests use is beside them, or in a folder of their own.
        const isTest = file.path.endsWith(".test.ts") || file.path.includes("/src/testing/");
        for (const target of importsOf(file.text)) {
          if (target.startsWith("node:")) continue;
          if (target.startsWith(".")) {
            if (target.includes("../..")) offences.push(`${file.path} reaches outside by ${target}`);
            continue;
          }
          const sibling = target.match(/^@flowcell\/([^/]+)$/)?.[1];
          if (sibling !== undefined) {
            if (!isTest && !allowed.includes(sibling)) offences.push(`${file.path} imports ${target}`);
          } else if (target.startsWith("@flowcell/")) {
            offences.push(`${file.path} imports the inside of a package: ${target}`);
          } else if (!isTest) {
            const external = target.startsWith("@")
              ? target.split("/").slice(0, 2).join("/")
              : target.split("/")[0];
            if (external !== undefined && !declared.includes(external)) {
              offences.push(`${file.path} imports ${external}, which package.json does not declare`);
            }
          }
        }
      }
      expect(offences).toEqual([]);
    });

    test(`every dependency of ${name} is pinned and used`, () => {
      const text = sourceFiles(`packages/${name}`, [".ts", ".mjs"])
        .map((file) => file.text)
        .join("\n");
      for (const [dependency, version] of Object.entries(manifestOf(name).dependencies ?? {})) {
        expect(version, `${name} → ${dependency}`).toMatch(/^\d+\.\d+\.\d+$/);
        expect(text, `${name} declares ${dependency} and never imports it`).toContain(`"${dependency}`);
      }
    });
  }
});
