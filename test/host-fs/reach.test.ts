// What no path reaches: everything outside of a grant, by links, second names, special files, other mounts and races that
// can be made step by step. Each refusal stands beside the same act that is allowed.
import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { type Descriptor, FileCalls } from "@flowcell/native";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { installProgram } from "./bundle.js";
import { type Answer, below, Ground, type Rules, type Scripted } from "./ground.js";

const secret = "the secret";
const ordinaryUser = 65534;

let ground: Ground;

beforeEach(() => {
  ground = new Ground();
  writeFileSync(join(ground.outside, "secret"), secret);
  writeFileSync(join(ground.data, "open.txt"), "open");
});

afterEach(() => {
  expect(readFileSync(join(ground.outside, "secret"), "utf8")).toBe(secret);
  expect(readdirSync(ground.outside)).toEqual(["secret"]);
  ground.remove();
  expect(below(ground.root), "descriptors left open").toEqual([]);
});

const write = [{ mount: "data", access: "write" }] as const;

/** Every function on one path. */
async function everything(script: Scripted, path: string): Promise<readonly Answer[]> {
  return [
    await script.call("read", path, { encoding: "bytes" }),
    await script.call("list", path),
    await script.call("stat", path),
    await script.call("write", path, "x", { createFolders: true }),
    await script.call("append", path, "x"),
    await script.call("delete", path),
  ];
}

async function expectDenied(script: Scripted, path: string): Promise<void> {
  for (const answer of await everything(script, path)) expect(answer, path).toMatchObject({ code: "denied" });
}

describe("rules", () => {
  test("what no rule names is denied without a look at the disk, and the message says what to add", async () => {
    mkdirSync(join(ground.data, "in"));
    const script = ground.script([{ mount: "data", path: "in", access: "read" }]);
    for (const path of [
      "/data",
      "/data/open.txt",
      "/data/nothing",
      "/data/inn",
      "/data/nothing/x",
      "/other/x",
    ]) {
      await expectDenied(script, path);
    }
    const [there, absent] = [
      await script.call("read", "/data/a/open.txt"),
      await script.call("read", "/data/a/none"),
    ];
    expect(there).toMatchObject({
      message:
        'fs.read: /data/a/open.txt is not granted; add {"mount":"data","path":"a","access":"read"} to grants.fs',
    });
    expect(absent).toMatchObject({ code: "denied" });
    expect(await script.call("write", "/data/in/x", "x")).toMatchObject({
      message:
        'fs.write: /data/in/x may be read but not written; add {"mount":"data","path":"in","access":"write"} to grants.fs',
    });
    expect(await script.call("list", "/data")).toMatchObject({
      detail: { file: "/data", grant: 'add {"mount":"data","access":"read"} to grants.fs' },
    });
  });

  test("deny beats protect beats write, however deep and in whatever order", async () => {
    for (const path of ["a/keep/b", "a/hidden/c"]) mkdirSync(join(ground.data, path), { recursive: true });
    writeFileSync(join(ground.data, "a/keep/b/f"), "kept");
    writeFileSync(join(ground.data, "a/hidden/c/f"), secret);
    const rules: Rules = [
      { mount: "data", path: "a/hidden", access: "deny" },
      { mount: "data", path: "a/hidden/c", access: "write" },
      { mount: "data", path: "a/keep", access: "protect" },
      { mount: "data", path: "a/keep/b", access: "write" },
      { mount: "data", path: "a", access: "write" },
    ];
    for (const order of [rules, [...rules].reverse()]) {
      const script = ground.script(order);
      await expectDenied(script, "/data/a/hidden/c/f");
      await expectDenied(script, "/data/a/hidden");
      expect(await script.call("read", "/data/a/keep/b/f")).toEqual({ ok: true, value: "kept" });
      expect(await script.call("write", "/data/a/keep/b/f", "x")).toMatchObject({
        code: "denied",
        message:
          'fs.write: /data/a/keep/b/f is protected from writing by the rule {"mount":"data","path":"a/keep","access":"protect"} of grants.fs',
      });
      for (const [name, ...rest] of [["append", "x"], ["delete"], ["write", "x"]]) {
        for (const file of ["b/f", "b/new", "new"]) {
          const answer = await script.call(name ?? "", `/data/a/keep/${file}`, ...rest);
          expect(answer, `${name} ${file}`).toMatchObject({ code: "denied" });
        }
      }
      expect(await script.call("write", "/data/a/f", "x")).toMatchObject({ ok: true });
    }
    expect(readdirSync(join(ground.data, "a/keep/b"))).toEqual(["f"]);
  });

  test("a rule for one file holds for that file", async () => {
    writeFileSync(join(ground.data, "config"), secret);
    const script = ground.script([...write, { mount: "data", path: "config", access: "deny" }]);
    await expectDenied(script, "/data/config");
    expect(await script.call("read", "/data/open.txt")).toMatchObject({ ok: true });
  });

  test("a protected or denied folder that does not exist yet cannot be made, under no spelling of its name", async () => {
    const script = ground.script([
      ...write,
      { mount: "data", path: "later/Keep", access: "protect" },
      { mount: "data", path: "hidden", access: "deny" },
    ]);
    const attempts = [
      "later/Keep/x",
      "later/KEEP/x",
      "later/keep. /x",
      "hidden/x",
      "Hidden/x",
      "HIDDEN",
      "\uFF28idden",
    ];
    for (const path of attempts) {
      const answer = await script.call("write", `/data/${path}`, "x", { createFolders: true });
      expect(answer, path).toMatchObject({ code: "denied" });
    }
    expect(readdirSync(ground.data)).toEqual(["open.txt"]);
    mkdirSync(join(ground.data, "hidden"));
    expect(
      await script.call("write", "/data/HIDDEN", "x"),
      "once it exists, other names are others",
    ).toMatchObject({
      ok: true,
    });
  });

  test("flowcell's own files are out of reach where a mount holds them, before and after they exist", async () => {
    const own = join(ground.data, "store");
    const script = ground.script(write, { alwaysDenied: [own] });
    const answer = await script.call("write", "/data/store", "x");
    expect(answer).toMatchObject({
      code: "denied",
      message: expect.stringContaining("flowcell's own files"),
    });
    mkdirSync(own);
    writeFileSync(join(own, "journal"), secret);
    await expectDenied(script, "/data/store/journal");
    symlinkSync("store", join(ground.data, "alias"));
    await expectDenied(script, "/data/alias/journal");
  });

  test("a denial of one mount holds for a mount that lies inside it", async () => {
    mkdirSync(join(ground.data, "private/inner"), { recursive: true });
    writeFileSync(join(ground.data, "private/inner/f"), secret);
    const script = (rules: Rules): Scripted =>
      ground.script(rules, {
        mounts: new Map([
          ["data", ground.data],
          ["inner", join(ground.data, "private/inner")],
        ]),
      });
    const inner = { mount: "inner", access: "write" } as const;
    expect(await script([inner]).call("read", "/inner/f")).toMatchObject({ ok: true });
    await expectDenied(script([inner, { mount: "data", path: "private", access: "deny" }]), "/inner/f");
    const kept = script([inner, { mount: "data", path: "private", access: "protect" }]);
    expect(await kept.call("read", "/inner/f")).toMatchObject({ ok: true });
    expect(await kept.call("write", "/inner/f", "x")).toMatchObject({ code: "denied" });
  });
});

describe("links", () => {
  test("are followed inside a mount, in the last place and before it, and decided by where they lead", async () => {
    mkdirSync(join(ground.data, "a/b"), { recursive: true });
    writeFileSync(join(ground.data, "a/f"), "linked");
    symlinkSync("../../a", join(ground.data, "a/b/up"));
    symlinkSync("a/b/up/f", join(ground.data, "to-file"));
    const script = ground.script(write);
    expect(await script.call("read", "/data/to-file")).toEqual({ ok: true, value: "linked" });
    expect(await script.call("read", "/data/a/b/up/b/up/f")).toEqual({ ok: true, value: "linked" });
    expect(await script.call("write", "/data/to-file", "new")).toMatchObject({ ok: true });
    expect(readFileSync(join(ground.data, "a/f"), "utf8")).toBe("new");
    expect(lstatSync(join(ground.data, "to-file")).isSymbolicLink()).toBe(true);
    expect(await script.call("delete", "/data/to-file")).toMatchObject({ code: "conflict" });
  });

  test("a file that does not exist yet is made where its link leads", async () => {
    mkdirSync(join(ground.data, "a"));
    symlinkSync("a/new", join(ground.data, "dangling"));
    symlinkSync("../outside/new", join(ground.data, "out"));
    const script = ground.script(write);
    expect(await script.call("write", "/data/dangling", "x")).toMatchObject({ ok: true });
    expect(readFileSync(join(ground.data, "a/new"), "utf8")).toBe("x");
    expect(await script.call("append", "/data/out", "x")).toMatchObject({ code: "denied" });
  });

  test.each([
    ["above the mount", "../outside/secret"],
    ["far above it", "../../../../../../../etc/hostname"],
    ["out of the mount and back in", "../data/open.txt"],
    ["to an absolute path", "/etc/hostname"],
  ])("%s are refused", async (_, target) => {
    mkdirSync(join(ground.data, "a"));
    symlinkSync(target, join(ground.data, "link"));
    symlinkSync(target.startsWith("/") ? target : `../${target}`, join(ground.data, "a/link"));
    const script = ground.script(write);
    for (const path of ["/data/link", "/data/a/link"]) {
      const [read, list, stat, written, appended] = await everything(script, path);
      for (const answer of [read, list, stat, written, appended])
        expect(answer).toMatchObject({ code: "denied" });
    }
    expect(await script.call("read", "/data/link/x")).toMatchObject({ code: "denied" });
  });

  test("to an absolute path inside the mount are refused too", async () => {
    symlinkSync(join(ground.data, "open.txt"), join(ground.data, "link"));
    expect(await ground.script(write).call("read", "/data/link")).toMatchObject({ code: "denied" });
  });

  test("sixteen in a row are followed, seventeen and loops are not", async () => {
    symlinkSync("open.txt", join(ground.data, "link1"));
    for (let at = 2; at <= 17; at += 1) symlinkSync(`link${at - 1}`, join(ground.data, `link${at}`));
    symlinkSync("loop", join(ground.data, "loop"));
    symlinkSync("pong", join(ground.data, "ping"));
    symlinkSync("ping", join(ground.data, "pong"));
    symlinkSync("self/self", join(ground.data, "self"));
    const script = ground.script(write);
    expect(await script.call("read", "/data/link16")).toEqual({ ok: true, value: "open" });
    for (const path of ["link17", "loop", "ping", "self", "ping/x"]) {
      expect(await script.call("read", `/data/${path}`), path).toMatchObject({ code: "denied" });
    }
  });

  test("into what is not granted are refused, whether anything is there or not", async () => {
    for (const folder of ["in", "elsewhere"]) mkdirSync(join(ground.data, folder));
    writeFileSync(join(ground.data, "elsewhere/f"), secret);
    symlinkSync("../elsewhere", join(ground.data, "in/way"));
    const script = ground.script([{ mount: "data", path: "in", access: "write" }]);
    for (const path of ["/data/in/way/f", "/data/in/way/none", "/data/in/way/none/x"])
      await expectDenied(script, path);
    expect(await script.call("read", "/data/in/way/f")).toMatchObject({
      message:
        'fs.read: /data/in/way/f leads by a link to /data/elsewhere/f, which is not granted; add {"mount":"data","path":"elsewhere","access":"read"} to grants.fs',
    });
  });

  test("into what is denied or protected are refused", async () => {
    for (const folder of ["hidden/deep", "kept", "in"])
      mkdirSync(join(ground.data, folder), { recursive: true });
    writeFileSync(join(ground.data, "hidden/deep/f"), secret);
    writeFileSync(join(ground.data, "kept/f"), "kept");
    for (const [target, name] of [
      ["../hidden", "1"],
      ["../hidden/deep", "2"],
      ["../kept", "3"],
    ] as const) {
      symlinkSync(target, join(ground.data, "in", name));
    }
    const script = ground.script([
      ...write,
      { mount: "data", path: "hidden", access: "deny" },
      { mount: "data", path: "kept", access: "protect" },
    ]);
    await expectDenied(script, "/data/in/1/deep/f");
    await expectDenied(script, "/data/in/2/f");
    await expectDenied(script, "/data/in/2/none");
    expect(await script.call("read", "/data/in/3/f")).toEqual({ ok: true, value: "kept" });
    expect(await script.call("write", "/data/in/3/f", "x")).toMatchObject({ code: "denied" });
  });

  test("a denial by the name of a link covers what the link leads to", async () => {
    mkdirSync(join(ground.data, "vault"));
    writeFileSync(join(ground.data, "vault/f"), secret);
    for (const target of ["vault", join(ground.data, "vault")]) {
      symlinkSync(target, join(ground.data, "private"));
      const script = ground.script([...write, { mount: "data", path: "private", access: "deny" }]);
      await expectDenied(script, "/data/vault/f");
      await expectDenied(script, "/data/private/f");
      unlinkSync(join(ground.data, "private"));
    }
  });
});

describe("denied folders that move", () => {
  const rules: Rules = [...write, { mount: "data", path: "private", access: "deny" }];

  beforeEach(() => {
    mkdirSync(join(ground.data, "private"));
    writeFileSync(join(ground.data, "private/f"), secret);
  });

  test("stay denied under another name, and so does what takes their place", async () => {
    const script = ground.script(rules);
    renameSync(join(ground.data, "private"), join(ground.data, "public"));
    await expectDenied(script, "/data/public/f");
    mkdirSync(join(ground.data, "private"));
    await expectDenied(script, "/data/private/f");
    renameSync(join(ground.data, "private"), join(ground.data, "second"));
    await expectDenied(script, "/data/second/x");
    await expectDenied(script, "/data/public/f");
    expect(await script.call("read", "/data/open.txt")).toMatchObject({ ok: true });
  });

  test("stay denied when a hundred others took their place since", async () => {
    const script = ground.script(rules);
    renameSync(join(ground.data, "private"), join(ground.data, "first"));
    for (let at = 0; at < 100; at += 1) {
      mkdirSync(join(ground.data, "private"));
      expect(await script.call("read", "/data/open.txt")).toMatchObject({ ok: true });
      renameSync(join(ground.data, "private"), join(ground.data, `moved${at}`));
    }
    await expectDenied(script, "/data/first/f");
    await expectDenied(script, "/data/moved99/f");
    expect(below(ground.root).length).toBeLessThan(30);
  });

  test("a mount that was replaced is not used until it is opened again", async () => {
    const script = ground.script(write);
    renameSync(ground.data, join(ground.root, "old"));
    expect(await script.call("read", "/data/open.txt")).toMatchObject({ code: "unavailable" });
    mkdirSync(ground.data);
    writeFileSync(join(ground.data, "open.txt"), "other");
    expect(await script.call("read", "/data/open.txt")).toMatchObject({ code: "unavailable" });
    expect(await ground.script(write).call("read", "/data/open.txt")).toEqual({ ok: true, value: "other" });
  });
});

describe("files with more than one name", () => {
  beforeEach(() => {
    linkSync(join(ground.outside, "secret"), join(ground.data, "second"));
  });

  test("are never changed", async () => {
    const script = ground.script(write);
    for (const [name, ...rest] of [["write", "x"], ["append", "x"], ["delete"]]) {
      const answer = await script.call(name ?? "", "/data/second", ...rest);
      expect(answer).toMatchObject({
        code: "denied",
        message: expect.stringContaining("2 names (hard links)"),
      });
    }
    expect(lstatSync(join(ground.data, "second")).nlink).toBe(2);
  });

  test("are read only where nothing is denied", async () => {
    const denial = { mount: "data", path: "hidden", access: "deny" } as const;
    expect(await ground.script(write).call("read", "/data/second")).toEqual({ ok: true, value: secret });
    for (const script of [
      ground.script([...write, denial]),
      ground.script(write, { alwaysDenied: [join(ground.data, "store")] }),
    ]) {
      expect(await script.call("read", "/data/second")).toMatchObject({ code: "denied" });
      expect(await script.call("read", "/data/open.txt")).toMatchObject({ ok: true });
    }
  });

  test("a second name that is taken away between the walk and the count does not hide", () => {
    const calls = new FileCalls();
    const folder = calls.openHost(ground.data);
    const open: Descriptor[] = [folder];
    const step = (name: string): Descriptor => {
      const handle = calls.step(folder, name);
      open.push(handle);
      return handle;
    };
    try {
      const lonely = step("open.txt");
      expect([calls.facts(lonely).links, calls.stillNamed(lonely, folder, "open.txt")]).toEqual([1, true]);
      const handle = step("second");
      expect([calls.facts(handle).links, calls.stillNamed(handle, folder, "second")]).toEqual([2, true]);
      unlinkSync(join(ground.data, "second"));
      expect([calls.facts(handle).links, calls.stillNamed(handle, folder, "second")]).toEqual([1, false]);
      linkSync(join(ground.outside, "secret"), join(ground.data, "second"));
      expect(calls.stillNamed(handle, folder, "second"), "a new name is not the one that was walked").toBe(
        false,
      );
      // The kernel marks a removed name by " (deleted)": a file that is called so must not pass for it.
      linkSync(join(ground.outside, "secret"), join(ground.data, "f (deleted)"));
      const other = step("f (deleted)");
      unlinkSync(join(ground.data, "f (deleted)"));
      expect(calls.stillNamed(other, folder, "f (deleted)")).toBe(false);
      expect(calls.stillNamed(other, folder, "f")).toBe(false);
    } finally {
      for (const descriptor of open) descriptor.close();
    }
  });

  test("a file whose name ends like a removed one is a file like others", async () => {
    const script = ground.script([...write, { mount: "data", path: "hidden", access: "deny" }]);
    const path = "/data/report (deleted)";
    expect(await script.call("append", path, "a")).toMatchObject({ ok: true });
    expect(await script.call("append", path, "b")).toMatchObject({ ok: true });
    expect(await script.call("read", path)).toEqual({ ok: true, value: "ab" });
    expect(await script.call("delete", path)).toEqual({ ok: true, value: true });
  });
});

describe("what is no file", () => {
  async function expectLetAlone(path: string): Promise<void> {
    const script = ground.script(write);
    const [read, list, stat, written, appended, deleted] = await everything(script, path);
    expect(stat).toMatchObject({ value: { kind: "other" } });
    expect(list).toMatchObject({ ok: false });
    for (const answer of [read, written, appended, deleted]) expect(answer).toMatchObject({ code: "denied" });
    const listed = await script.call("list", "/data");
    expect(listed).toMatchObject({ value: expect.arrayContaining([{ name: "special", kind: "other" }]) });
  }

  test("a fifo is neither opened nor waited for", async () => {
    execFileSync("mkfifo", [join(ground.data, "special")]);
    await expectLetAlone("/data/special");
  });

  test("a socket is let alone", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(join(ground.data, "special"), resolve));
    try {
      await expectLetAlone("/data/special");
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });

  test("a device is let alone", async ({ skip }) => {
    const { status } = spawnSync("mknod", [join(ground.data, "special"), "c", "1", "3"]);
    if (status !== 0) return skip("only root makes devices; the next test uses one of the system's");
    await expectLetAlone("/data/special");
  });

  test("a device of the system is let alone", async () => {
    const script = ground.script([{ mount: "dev", access: "write" }], { mounts: new Map([["dev", "/dev"]]) });
    expect(await script.call("stat", "/dev/null")).toMatchObject({ value: { kind: "other" } });
    for (const [name, ...rest] of [["read"], ["append", "x"], ["delete"], ["write", "x"]]) {
      expect(await script.call(name ?? "", "/dev/null", ...rest), name).toMatchObject({ code: "denied" });
    }
  });

  test("file systems of the kernel are not entered below a mount", async () => {
    const script = ground.script([{ mount: "root", access: "read" }], { mounts: new Map([["root", "/"]]) });
    for (const path of [
      "/root/proc",
      "/root/proc/self/environ",
      "/root/proc/self/root/etc",
      "/root/sys/kernel",
    ]) {
      for (const name of ["read", "list", "stat"]) {
        expect(await script.call(name, path), path).toMatchObject({
          code: "denied",
          message: expect.stringContaining("interface of the kernel"),
        });
      }
    }
  });
});

describe("other mounts below a mount", () => {
  /** The options of unshare with which mounting works here; undefined where nobody here may mount. */
  function unshareOptions(): readonly string[] | undefined {
    const own = ["--mount", "--propagation", "private"];
    return [own, ["--user", "--map-root-user", ...own]].find(
      (options) =>
        spawnSync("unshare", [...options, "mount", "-t", "tmpfs", "none", ground.more]).status === 0,
    );
  }

  test("are entered, but not where they may show a part of a denied folder", ({ skip }) => {
    const options = unshareOptions();
    if (options === undefined) return skip("this machine lets nobody here mount anything");
    mkdirSync(join(ground.data, "hidden/deep"), { recursive: true });
    for (const folder of ["bound", "foreign", "plain"]) mkdirSync(join(ground.data, folder));
    writeFileSync(join(ground.data, "hidden/deep/f"), secret);
    writeFileSync(join(ground.data, "plain/f"), "plain");
    const program = installProgram(ground.root, "./mounted.child.ts");
    const script = `cd "$1"
      mount --bind hidden/deep bound
      mount -t tmpfs none foreign
      printf foreign > foreign/f
      test "$(cat bound/f)" = "$4"
      exec "$2" "$3" "$1"`;
    const args = ["sh", ground.data, process.execPath, program, secret];
    const output = execFileSync("unshare", [...options, "sh", "-ec", script, ...args], { encoding: "utf8" });
    expect(JSON.parse(output)).toEqual(["denied", "foreign", "plain"]);
  });
});

describe("the user that flowcell runs as", () => {
  test("is refused by the system as ever, in words that name no path of the host", () => {
    const isRoot = process.geteuid?.() === 0;
    const program = installProgram(ground.root, "./ordinary.child.ts");
    chmodSync(ground.root, 0o755);
    if (isRoot) chownSync(ground.more, ordinaryUser, ordinaryUser);
    const identity = isRoot ? { uid: ordinaryUser, gid: ordinaryUser } : {};
    const output = execFileSync(process.execPath, [program, ground.more], {
      ...identity,
      cwd: "/",
      encoding: "utf8",
    });
    expect(JSON.parse(output)).toMatchObject({
      user: isRoot ? ordinaryUser : process.geteuid?.(),
      readClosed: {
        code: "io_error",
        message: "fs.read: /data/closed cannot be reached by the user that flowcell runs as (EACCES)",
        detail: { file: "/data/closed", errno: "EACCES" },
      },
      appendClosed: { code: "io_error" },
      writeReadonly: { code: "io_error" },
      readLocked: { code: "io_error" },
      readDenied: { code: "denied" },
      writeFull: { code: "io_error" },
      statClosed: { value: { kind: "file", size: 6 } },
      list: { value: [] },
    });
    expect(output).not.toContain(ground.root);
  });
});
