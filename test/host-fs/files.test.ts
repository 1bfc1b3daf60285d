// What scripts do with files they were granted: contents, lists, limits, arguments; and that nothing stays open.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { FsMountError } from "@flowcell/host";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { below, Ground } from "./ground.js";

let ground: Ground;

beforeEach(() => {
  ground = new Ground();
});

afterEach(() => {
  ground.remove();
  expect(below(ground.root), "descriptors left open").toEqual([]);
});

const all = [{ mount: "data", access: "write" }] as const;

describe("fs.read", () => {
  test("gives text as it is, a byte order mark and line ends included", async () => {
    const text = "\uFEFFgrüße\r\n\u{1F600}";
    writeFileSync(join(ground.data, "a.txt"), text);
    const script = ground.script([{ mount: "data", access: "read" }]);
    expect(await script.call("read", "/data/a.txt")).toEqual({ ok: true, value: text });
  });

  test("gives bytes as a plain Uint8Array of exactly the file", async () => {
    const bytes = Uint8Array.from({ length: 3_000_000 }, (_, index) => index * 7);
    writeFileSync(join(ground.data, "a.bin"), bytes);
    const script = ground.script(all);
    const answer = await script.call("read", "/data/a.bin", { encoding: "bytes" });
    const value = answer.ok ? answer.value : undefined;
    expect(Object.getPrototypeOf(value)).toBe(Uint8Array.prototype);
    expect(value instanceof Uint8Array && Buffer.compare(value, bytes)).toBe(0);
    expect(value instanceof Uint8Array && value.buffer.byteLength).toBe(bytes.length);
  });

  test("gives an empty file as an empty text", async () => {
    writeFileSync(join(ground.data, "empty"), "");
    expect(await ground.script(all).call("read", "/data/empty")).toEqual({ ok: true, value: "" });
  });

  test("refuses text that is not UTF-8 instead of guessing, and gives it as bytes", async () => {
    writeFileSync(join(ground.data, "latin1"), Uint8Array.of(0x67, 0xfc));
    const script = ground.script(all);
    expect(await script.call("read", "/data/latin1")).toMatchObject({
      code: "invalid_arguments",
      message: 'fs.read: /data/latin1 is not text in UTF-8; read it with {encoding: "bytes"}',
      detail: { file: "/data/latin1", reason: "not_utf8" },
    });
    expect(await script.call("read", "/data/latin1", { encoding: "bytes" })).toMatchObject({
      value: Uint8Array.of(0x67, 0xfc),
    });
  });

  test("refuses a file above maxBytes, above what a value or what a body may have, and takes one of exactly that size", async () => {
    writeFileSync(join(ground.data, "ten"), "0123456789");
    const script = ground.script(all, { bodyBytes: 10, textBytes: 9 });
    expect(await script.call("read", "/data/ten", { encoding: "bytes" })).toMatchObject({ ok: true });
    expect(await script.call("read", "/data/ten", { encoding: "bytes", maxBytes: 9 })).toMatchObject({
      code: "result_too_large",
    });
    expect(await script.call("read", "/data/ten")).toMatchObject({
      code: "result_too_large",
      message: 'fs.read: /data/ten has more than 9 bytes; {encoding: "bytes"} allows more',
    });
    writeFileSync(join(ground.data, "eleven"), "01234567890");
    expect(await script.call("read", "/data/eleven", { encoding: "bytes" })).toMatchObject({
      code: "result_too_large",
    });
  });

  test("says what is missing and what is no file", async () => {
    mkdirSync(join(ground.data, "folder"));
    writeFileSync(join(ground.data, "file"), "");
    const script = ground.script(all);
    expect(await script.call("read", "/data/nothing")).toMatchObject({
      code: "not_found",
      message: "fs.read: /data/nothing does not exist",
    });
    expect(await script.call("read", "/data/file/below")).toMatchObject({ code: "not_found" });
    expect(await script.call("read", "/data/folder")).toMatchObject({
      code: "conflict",
      detail: { kind: "folder" },
    });
    expect(await script.call("read", "/data")).toMatchObject({ code: "conflict" });
  });

  test("stops when the call is cancelled", async () => {
    writeFileSync(join(ground.data, "a"), new Uint8Array(1 << 22));
    const controller = new AbortController();
    const script = ground.script(all);
    const reading = script.callWith({ signal: controller.signal }, "read", "/data/a", { encoding: "bytes" });
    controller.abort();
    expect(await reading).toMatchObject({ code: "cancelled" });
  });
});

describe("fs.list", () => {
  test("gives every entry with its kind, sorted, and none of the files that are being written", async () => {
    mkdirSync(join(ground.data, "b"));
    writeFileSync(join(ground.data, "a"), "");
    writeFileSync(join(ground.data, "Z"), "");
    writeFileSync(join(ground.data, `.flowcell-${"0".repeat(32)}`), "");
    symlinkSync("nowhere", join(ground.data, "link"));
    expect(await ground.script(all).call("list", "/data")).toEqual({
      ok: true,
      value: [
        { name: "Z", kind: "file" },
        { name: "a", kind: "file" },
        { name: "b", kind: "folder" },
        { name: "link", kind: "link" },
      ],
    });
    expect(await ground.script(all).call("list", "/data/b")).toEqual({ ok: true, value: [] });
  });

  test("lists thousands of entries with long names, and refuses one above its bound", async () => {
    const names = Array.from({ length: 3000 }, (_, index) => `${"n".repeat(200)}${index}`).sort();
    for (const name of names) writeFileSync(join(ground.data, name), "");
    const listed = await ground.script(all, { listEntriesMax: 3000 }).call("list", "/data");
    expect(listed.ok && listed.value).toEqual(names.map((name) => ({ name, kind: "file" })));
    expect(await ground.script(all, { listEntriesMax: 2999 }).call("list", "/data")).toMatchObject({
      code: "result_too_large",
    });
  });

  test("shows a name that is not UTF-8 without pretending that it leads anywhere", async () => {
    writeFileSync(Buffer.concat([Buffer.from(`${ground.data}/`), Buffer.of(0x66, 0xff)]), "");
    expect(await ground.script(all).call("list", "/data")).toEqual({
      ok: true,
      value: [{ name: "f\uFFFD", kind: "other" }],
    });
  });

  test("refuses what is no folder", async () => {
    writeFileSync(join(ground.data, "a"), "");
    expect(await ground.script(all).call("list", "/data/a")).toMatchObject({ code: "conflict" });
    expect(await ground.script(all).call("list", "/data/b")).toMatchObject({ code: "not_found" });
  });
});

describe("fs.stat", () => {
  test("gives kind, size and time of change, null for what does not exist", async () => {
    writeFileSync(join(ground.data, "a"), "12345");
    utimesSync(join(ground.data, "a"), 1_700_000_000, 1_700_000_000.125);
    const script = ground.script(all);
    expect(await script.call("stat", "/data/a")).toEqual({
      ok: true,
      value: { kind: "file", size: 5, mtimeMs: 1_700_000_000_125 },
    });
    expect(await script.call("stat", "/data")).toMatchObject({ value: { kind: "folder", size: 0 } });
    expect(await script.call("stat", "/data/b")).toEqual({ ok: true, value: null });
    expect(await script.call("stat", "/data/a/b")).toEqual({ ok: true, value: null });
    expect(await script.call("stat", "/data/b/c")).toEqual({ ok: true, value: null });
  });
});

describe("fs.write", () => {
  test("makes and replaces files as a whole, with text and with bytes", async () => {
    const script = ground.script(all);
    expect(await script.call("write", "/data/a", "grüße")).toEqual({ ok: true, value: { bytes: 7 } });
    expect(readFileSync(join(ground.data, "a"), "utf8")).toBe("grüße");
    expect(await script.call("write", "/data/a", Uint8Array.of(0, 255))).toMatchObject({ ok: true });
    expect([...readFileSync(join(ground.data, "a"))]).toEqual([0, 255]);
    expect(readdirSync(ground.data)).toEqual(["a"]);
  });

  test("keeps the mode of the file it replaces", async () => {
    for (const mode of [0o600, 0o640, 0o755]) {
      writeFileSync(join(ground.data, "a"), "");
      chmodSync(join(ground.data, "a"), mode);
      expect(await ground.script(all).call("write", "/data/a", "x")).toMatchObject({ ok: true });
      expect(statSync(join(ground.data, "a")).mode & 0o777).toBe(mode);
    }
  });

  test("makes missing folders only when asked to, and only within its grant", async () => {
    const script = ground.script([{ mount: "data", path: "out", access: "write" }]);
    expect(await script.call("write", "/data/out/b/c.txt", "x")).toMatchObject({ code: "not_found" });
    expect(existsSync(join(ground.data, "out"))).toBe(false);
    expect(await script.call("write", "/data/out/b/c.txt", "x", { createFolders: true })).toMatchObject({
      ok: true,
    });
    expect(readFileSync(join(ground.data, "out/b/c.txt"), "utf8")).toBe("x");
    const deep = ground.script([{ mount: "data", path: "in/deep", access: "write" }]);
    expect(await deep.call("write", "/data/in/deep/c.txt", "x", { createFolders: true })).toMatchObject({
      code: "denied",
      detail: { grant: 'add {"mount":"data","path":"in","access":"write"} to grants.fs' },
    });
    expect(existsSync(join(ground.data, "in"))).toBe(false);
  });

  test("does not write over a folder, into a folder that is a file, or over a mount", async () => {
    mkdirSync(join(ground.data, "folder"));
    writeFileSync(join(ground.data, "file"), "old");
    const script = ground.script(all);
    for (const path of ["/data/folder", "/data/file/a", "/data"]) {
      expect(await script.call("write", path, "x", { createFolders: true })).toMatchObject({
        code: "conflict",
      });
    }
    expect(readFileSync(join(ground.data, "file"), "utf8")).toBe("old");
  });

  test("refuses data above the limit and text that UTF-8 cannot write", async () => {
    const script = ground.script(all, { bodyBytes: 4 });
    expect(await script.call("write", "/data/a", "grün")).toMatchObject({ code: "too_large" });
    expect(await script.call("write", "/data/a", new Uint8Array(5))).toMatchObject({ code: "too_large" });
    expect(await script.call("write", "/data/a", "\uD800")).toMatchObject({ code: "invalid_arguments" });
    expect(readdirSync(ground.data)).toEqual([]);
  });

  test("leaves nothing behind when it is cancelled before the new content has its name", async () => {
    writeFileSync(join(ground.data, "a"), "old");
    const controller = new AbortController();
    const script = ground.script(all);
    const writing = script.callWith(
      { signal: controller.signal },
      "write",
      "/data/a",
      new Uint8Array(1 << 22),
    );
    controller.abort();
    expect(await writing).toMatchObject({ code: "cancelled" });
    expect(readdirSync(ground.data)).toEqual(["a"]);
    expect(readFileSync(join(ground.data, "a"), "utf8")).toBe("old");
  });

  test("replaces what its own earlier try left, whatever it is", async () => {
    const script = ground.script(all);
    const first = await script.callWith({ idempotencyKey: "k" }, "write", "/data/a", "1");
    expect(first).toMatchObject({ ok: true });
    const { createHash } = await import("node:crypto");
    const left = `.flowcell-${createHash("sha256").update("k").digest("hex").slice(0, 32)}`;
    writeFileSync(join(ground.outside, "secret"), "secret");
    symlinkSync(join(ground.outside, "secret"), join(ground.data, left));
    expect(await script.callWith({ idempotencyKey: "k" }, "write", "/data/a", "2")).toMatchObject({
      ok: true,
    });
    expect(readFileSync(join(ground.data, "a"), "utf8")).toBe("2");
    expect(readFileSync(join(ground.outside, "secret"), "utf8")).toBe("secret");
    expect(readdirSync(ground.data)).toEqual(["a"]);
  });
});

describe("fs.append and fs.delete", () => {
  test("append adds to the end and makes a file that is not there, in no folder that is not there", async () => {
    const script = ground.script(all);
    expect(await script.call("append", "/data/log", "a\n")).toEqual({ ok: true, value: { bytes: 2 } });
    expect(await script.call("append", "/data/log", Uint8Array.of(98, 10))).toMatchObject({ ok: true });
    expect(readFileSync(join(ground.data, "log"), "utf8")).toBe("a\nb\n");
    expect(await script.call("append", "/data/no/log", "a")).toMatchObject({ code: "not_found" });
    mkdirSync(join(ground.data, "folder"));
    expect(await script.call("append", "/data/folder", "a")).toMatchObject({ code: "conflict" });
  });

  test("appends that are made at once all arrive, in the order in which they were noted", async () => {
    const script = ground.script(all);
    const keys = Array.from({ length: 20 }, (_, index) => `append-${index}`);
    for (const key of keys) await script.prepare({ idempotencyKey: key }, "append", "/data/log", `${key};`);
    const calls = [...keys]
      .reverse()
      .map((key) => script.callWith({ idempotencyKey: key }, "append", "/data/log", `${key};`));
    expect((await Promise.all(calls)).every(({ ok }) => ok)).toBe(true);
    expect(readFileSync(join(ground.data, "log"), "utf8")).toBe(keys.map((key) => `${key};`).join(""));
  });

  test("delete takes a file away and says whether there was one; folders and mounts it leaves", async () => {
    writeFileSync(join(ground.data, "a"), "");
    mkdirSync(join(ground.data, "folder"));
    const script = ground.script(all);
    expect(await script.call("delete", "/data/a")).toEqual({ ok: true, value: true });
    expect(await script.call("delete", "/data/a")).toEqual({ ok: true, value: false });
    expect(await script.call("delete", "/data/x/y")).toEqual({ ok: true, value: false });
    expect(await script.call("delete", "/data/folder")).toMatchObject({ code: "conflict" });
    expect(await script.call("delete", "/data")).toMatchObject({ code: "conflict" });
    expect(readdirSync(ground.data)).toEqual(["folder"]);
  });
});

describe("arguments", () => {
  test.each([
    ["relative", "data/a"],
    ["without a mount", "/"],
    ["climbing", "/data/../outside/secret"],
    ["climbing at the end", "/data/.."],
    ["dotted", "/data/./a"],
    ["with an empty component", "/data//a"],
    ["with a slash at the end", "/data/a/"],
    ["with a zero byte", "/data/a\0b"],
    ["with half a surrogate pair", "/data/\uD800"],
    ["with a name above 255 bytes", `/data/${"ü".repeat(128)}`],
    ["above 4095 bytes", `/data${"/abcdefghi".repeat(410)}`],
    ["of a hundred folders and more", `/data${"/a".repeat(101)}`],
    ["of a temporary file", `/data/.flowcell-${"a".repeat(32)}`],
  ])("a path %s is refused by every function", async (_, path) => {
    const script = ground.script(all);
    for (const args of [["read"], ["list"], ["stat"], ["delete"], ["write", "x"], ["append", "x"]]) {
      const [name = "", ...rest] = args;
      expect(await script.call(name, path, ...rest), name).toMatchObject({ code: "invalid_arguments" });
    }
  });

  test("names of the longest length and of any script are names like others", async () => {
    const names = [
      "n".repeat(255),
      "ü".repeat(127),
      "e\u0301",
      "\u00E9",
      "A",
      "a",
      " ",
      "~",
      "\\",
      "-rf",
      "%2e%2e",
    ];
    const script = ground.script(all);
    for (const name of names)
      expect(await script.call("write", `/data/${name}`, name)).toMatchObject({ ok: true });
    for (const name of names) {
      expect(await script.call("read", `/data/${name}`)).toEqual({ ok: true, value: name });
    }
    expect(readdirSync(ground.data).sort()).toEqual([...names].sort());
  });

  test("options that nobody knows are refused with the nearest known one", async () => {
    const script = ground.script(all);
    const { issues } = await script.row("read").input["~standard"].validate(["/data/a", { maxByte: 1 }]);
    expect(issues?.[0]?.message).toContain("did you mean maxBytes?");
    for (const args of [["/data/a", "x", { createFolder: true }], ["/data/a", 1], [1, "x"], ["/data/a"]]) {
      expect((await script.row("write").input["~standard"].validate(args)).issues).toBeDefined();
    }
  });
});

describe("mounts", () => {
  const rules = [{ mount: "data", access: "read" }] as const;

  test.each([
    ["is mapped to no folder", new Map<string, string>()],
    ["does not exist", new Map([["data", "/nonexistent/folder"]])],
    ["is a file", new Map([["data", "/proc/self/exe"]])],
    ["is relative", new Map([["data", "some/folder"]])],
    ["is of the kernel", new Map([["data", "/proc"]])],
  ])("a mount that %s is an error that names it and not its folder", (_, mounts) => {
    const make = (): unknown => ground.script(rules, { mounts });
    expect(make).toThrow(FsMountError);
    expect(make).toThrow(/^mount "data" /);
    for (const folder of mounts.values()) expect(make).not.toThrow(folder);
  });

  test("a mount inside flowcell's own files is refused", () => {
    mkdirSync(join(ground.own, "inner"));
    for (const folder of [ground.own, join(ground.own, "inner")]) {
      const make = (): unknown => ground.script(rules, { mounts: new Map([["data", folder]]) });
      expect(make).toThrow(/flowcell's own/);
    }
  });

  test("calls after close are cancelled", async () => {
    const script = ground.script(all);
    script.close();
    expect(await script.call("read", "/data/a")).toMatchObject({ code: "cancelled" });
  });
});
