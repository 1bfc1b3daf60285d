// The commands for flows without processes: the table and the code name the same things; an approval on a terminal; what a
// reviewer sees of hostile texts.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FlowService, OperationError, type VersionReport } from "@flowcell/flows";
import { MemoryStore } from "@flowcell/journal";
import { profileLimits } from "@flowcell/protocol";
import { afterAll, describe, expect, test } from "vitest";
import { Context } from "../flows/context.js";
import { approve } from "../flows/decide.js";
import { changesText, reachText, sourceText } from "../flows/version-text.js";
import { fakeService } from "../owner/fake-service.js";
import type { OwnerParts } from "../owner/open.js";
import { isOperation, operationNames } from "../owner/operations.js";
import { commands } from "./commands.js";
import { flowsCommands } from "./flows-command.js";
import { Typed } from "./typed.js";

describe("the table", () => {
  test("has a row for every command that has code, and code for every row", () => {
    // These have bundles of their own.
    const elsewhere = ["doctor", "exec", "mcp"];
    const rows = commands.map(({ name }) => name).filter((name) => !elsewhere.includes(name));
    expect(rows.sort()).toEqual(Object.keys(flowsCommands).sort());
  });

  test("names operations that are there, and leaves none out that a person needs", () => {
    const named = commands.flatMap(({ operation }) => (operation === null ? [] : [operation]));
    for (const name of named) expect(isOperation(name), name).toBe(true);
    // Asked for by other commands: wait by start, run and quarantined by runs, answer by approve and reject.
    const inside = ["wait", "run", "quarantined", "answer", "emit"];
    expect([...named, ...inside].sort()).toEqual([...operationNames].sort());
  });
});

const version: VersionReport = {
  flow: "prices",
  hash: "ab".repeat(32),
  number: 2,
  state: "installed",
  installedAt: 0,
  installedBy: "ada",
  decidedAt: null,
  decidedBy: null,
  decisionReason: null,
  reach: {
    hosts: ["allow api.example.com, port 443, GET"],
    mounts: [],
    secrets: [],
    kvMaxBytes: 0,
    flows: [],
    events: [],
    tools: [],
    budgets: { ...profileLimits("flow"), cpuMs: 5000 },
    trigger: "manual",
    remarks: ["grants.net[0]: any port"],
  },
  difference: null,
  manifestText: '{"format":1}',
  sources: [{ path: "flow.ts", text: "export default () => 1;\n" }],
  bundle: "x",
  dryRun: {
    status: "completed",
    message: null,
    calls: [{ name: "fetch", args: '"https://api.example.com"' }],
    logs: [],
  },
};

describe("what a reviewer sees", () => {
  test("reach: what was added first, budgets only where they differ", () => {
    const difference = { approvedHash: "cd".repeat(32), added: ["network api.example.com"], removed: [] };
    const text = reachText({ ...version, difference });
    expect(text).toMatch(
      /^reach, compared with the approved version cdcdcdcdcdcd:\n {2}\+ network api\.example\.com\n/,
    );
    expect(text).toContain("budget   cpuMs 5000 (usual: 1000)");
    expect(text.match(/budget/g)).toHaveLength(1);
    expect(text).toContain("look at:\n  grants.net[0]: any port");
  });

  test("nothing that a source hides: control, direction, zero width", () => {
    const text = 'const a = "\u202eevil\u202c"; // \u200bx\u001b[2K\r\nok\ufeff\n';
    const shown = sourceText({ ...version, sources: [{ path: "a\u001b[2K.ts", text }] });
    expect(shown).toContain('const a = "\\u{202e}evil\\u{202c}"; // \\u{200b}x\\u{1b}[2K\\u{d}');
    expect(shown).toContain("ok\\u{feff}");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    expect(shown.replaceAll("\n", "")).not.toMatch(/[\u0000-\u001f\u200b\u202e]/);
  });

  test("changes: files that came, went and changed, and nothing else", () => {
    const sources = [
      { path: "flow.ts", text: "export default () => 2;\n" },
      { path: "new.ts", text: "export {};\n" },
    ];
    const text = changesText(
      { ...version, sources: [...version.sources, { path: "old.ts", text: "old\n" }] },
      { ...version, sources },
    );
    expect(text).toContain("--- approved/flow.ts\n+++ new/flow.ts\n");
    expect(text).toContain("-export default () => 1;\n+export default () => 2;\n");
    expect(text).toContain("--- /dev/null\n+++ new/new.ts\n");
    expect(text).toContain("--- approved/old.ts\n+++ /dev/null\n");
    expect(text).not.toContain("flow.json");
  });
});

const data = mkdtempSync(join(tmpdir(), "flows-command-"));
afterAll(() => rmSync(data, { recursive: true, force: true }));

describe("approve on a terminal", () => {
  async function approveWith(
    answer: string,
    service: Partial<FlowService>,
  ): Promise<{ code: number; out: string; asked: string; heldWhileAsked: boolean }> {
    let out = "";
    let asked = "";
    let held = 0;
    let heldWhileAsked = false;
    const parts: OwnerParts = {
      openStore: async () => {
        const store = new MemoryStore();
        const close = store.close.bind(store);
        held++;
        store.close = async () => {
          held--;
          await close();
        };
        return store;
      },
      openPool: () => ({
        activate: async () => Promise.reject(new Error("nothing is activated")),
        health: () => ({ waiting: 0 }),
        close: async () => undefined,
      }),
      fingerprint: () => "f",
      createService: () => fakeService(service),
      deniedPaths: [],
      environment: {},
      onBug: (error) => {
        throw error;
      },
    };
    const streams = {
      out: (text: string) => {
        out += text;
      },
      err: () => undefined,
      outIsTerminal: true,
      ask: async (question: string) => {
        asked += question;
        heldWhileAsked = held > 0;
        return answer;
      },
    };
    const code = await approve(new Context(new Typed(["prices"], { data }), streams, parts));
    return { code, out, asked, heldWhileAsked };
  }

  test.each(["y", "yes", "Y"])("%s approves the hash that was shown", async (answer) => {
    const approved: unknown[] = [];
    const { code, out, asked } = await approveWith(answer, {
      show: async () => version,
      approve: async (options) => void approved.push(options),
    });
    expect(code).toBe(0);
    expect(asked).toContain("approve abababababab of prices?");
    expect(out.indexOf("reach:")).toBeLessThan(out.indexOf("export default"));
    expect(out).toContain(`hash      ${version.hash}`);
    expect(out).toContain('  fetch "https://api.example.com"');
    expect(approved).toEqual([{ flow: "prices", hash: version.hash, by: expect.any(String) }]);
  });

  test("nothing is held while somebody reads, and the answer is about what was read", async () => {
    const approved: unknown[] = [];
    const other = { ...version, hash: "ef".repeat(32), number: 3 };
    let shown = 0;
    const { code, heldWhileAsked } = await approveWith("y", {
      // Another version is installed in the meantime.
      show: async () => (shown++ === 0 ? version : other),
      approve: async (options) => void approved.push(options),
    });
    expect({ code, heldWhileAsked }).toEqual({ code: 0, heldWhileAsked: false });
    expect(approved).toEqual([{ flow: "prices", hash: version.hash, by: expect.any(String) }]);
  });

  test.each(["", "n", "yellow", "no"])("%j approves nothing", async (answer) => {
    const { code } = await approveWith(answer, { show: async () => version });
    expect(code).toBe(3);
  });

  test("what the service refuses is not approved", async () => {
    const refused = approveWith("y", {
      show: async () => version,
      approve: async () => {
        throw new OperationError("invalid", "a mount is missing");
      },
    });
    await expect(refused).rejects.toThrow("a mount is missing");
  });
});
