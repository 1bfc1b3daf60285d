// The build driver on a small tree of its own: what it rebuilds, what it says, and that its products do not depend on where
// the tree lies.

import { spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";

const scripts = fileURLToPath(new URL("../", import.meta.url));

const sources: Readonly<Record<string, string>> = {
  "worker-native/src/part/number.h": "#define NUMBER 5\n",
  "worker-native/src/part/part.c":
    '#include "part/number.h"\nint part(void);\nint part(void) { return NUMBER; }\n',
  "worker-native/src/part/part_windows.c": "#error not for this system\n",
  "worker-native/src/part/part_test.c": "#error not part of the folder\n",
  "worker-native/src/main/main.c": "int part(void);\nint main(void) { return part(); }\n",
  "worker-native/src/bare/start.c":
    '_Noreturn void _start(void);\n_Noreturn void _start(void) {\n  static const char *const file = __FILE__;\n  __asm__ volatile("" ::"r"(file));\n  for (;;) {\n  }\n}\n',
  "scripts/native/targets.mjs": `export const targets = [
    { name: "number", kind: "step", module: "./number.mjs", entry: "number" },
    { name: "main", kind: "hosted-exe", sources: ["src/part", "src/main"], dependsOn: ["number"] },
    { name: "bare", kind: "freestanding-exe", sources: ["src/bare"] },
  ];\n`,
  "scripts/native/number.mjs": "export async function number() {}\n",
};

interface Outcome {
  readonly code: number | null;
  readonly output: string;
}

class Tree {
  readonly root = mkdtempSync(join(tmpdir(), "flowcell-build-"));

  constructor() {
    for (const name of ["build-native.mjs", "lib/lock.mjs", "native/compile.mjs"]) {
      mkdirSync(dirname(join(this.root, "scripts", name)), { recursive: true });
      cpSync(join(scripts, name), join(this.root, "scripts", name));
    }
    for (const [path, text] of Object.entries(sources)) this.write(path, text);
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true });
    writeFileSync(join(this.root, path), text);
  }

  product(path: string): string {
    return join(this.root, "worker-native/build", path);
  }

  build(args: readonly string[] = [], env: NodeJS.ProcessEnv = process.env): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const child = spawn(process.execPath, [join(this.root, "scripts/build-native.mjs"), ...args], { env });
      let output = "";
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding("utf8").on("data", (text: string) => {
          output += text;
        });
      }
      child.on("error", reject);
      child.on("close", (code) => resolve({ code, output }));
    });
  }
}

const trees: Tree[] = [];

function tree(): Tree {
  const made = new Tree();
  trees.push(made);
  return made;
}

afterEach(() => {
  for (const { root } of trees.splice(0)) rmSync(root, { recursive: true, force: true });
});

function exitCode(program: string): Promise<number | null> {
  return new Promise((resolve) => {
    spawn(program).on("close", resolve);
  });
}

describe("the native build", () => {
  it("builds a folder's sources for this system only, and then has nothing to do and says nothing", async () => {
    const one = tree();
    expect(await one.build()).toMatchObject({ code: 0, output: expect.stringMatching(/main: 3 made/) });
    expect(await exitCode(one.product("bin/main"))).toBe(5);
    const before = statSync(one.product("bin/main")).ino;
    expect(await one.build()).toEqual({ code: 0, output: "" });
    expect(statSync(one.product("bin/main")).ino).toBe(before);
  });

  it("rebuilds what a changed header goes into, and nothing else", async () => {
    const one = tree();
    await one.build();
    one.write("worker-native/src/part/number.h", "#define NUMBER 6\n");
    expect((await one.build()).output).toMatch(/^main: 2 made \(.*\)\n$/);
    expect(await exitCode(one.product("bin/main"))).toBe(6);
  });

  it("goes by contents: a touched file is not compiled, a change with an old date is", async () => {
    const one = tree();
    await one.build();
    one.write("worker-native/src/part/number.h", "#define NUMBER 5\n");
    expect((await one.build()).output).toBe("");
    one.write("worker-native/src/part/number.h", "#define NUMBER 7\n");
    await new Promise((done) =>
      spawn("touch", ["-d", "2001-01-01", join(one.root, "worker-native/src/part/number.h")]).on(
        "close",
        done,
      ),
    );
    await one.build();
    expect(await exitCode(one.product("bin/main"))).toBe(7);
  });

  it("rebuilds a product that was deleted, and everything when the flags change", async () => {
    const one = tree();
    await one.build();
    rmSync(one.product("bin/main"));
    expect((await one.build()).output).toMatch(/^main: 1 made/);
    const table = sources["scripts/native/targets.mjs"] ?? "";
    one.write("scripts/native/targets.mjs", table.replace('name: "main",', 'name: "main", flags: ["-DX"],'));
    expect((await one.build()).output).toMatch(/^main: 3 made/);
  });

  it("shows the failing command and what the compiler said, leaves the old product, and fails again", async () => {
    const one = tree();
    await one.build();
    one.write("worker-native/src/part/part.c", "int part(void);\nint part(void) { return nonsense; }\n");
    const failed = await one.build();
    expect(failed.code).toBe(65);
    expect(failed.output).toContain("-c worker-native/src/part/part.c");
    expect(failed.output).toContain("nonsense");
    expect(failed.output).not.toContain("start.c");
    expect(await exitCode(one.product("bin/main"))).toBe(5);
    expect((await one.build()).code).toBe(65);
  });

  it("makes the same bytes wherever the tree lies", async () => {
    const [one, other] = [tree(), tree()];
    await Promise.all([one.build(), other.build()]);
    for (const product of ["bin/main", "bin/bare"]) {
      expect(readFileSync(one.product(product)).equals(readFileSync(other.product(product)))).toBe(true);
    }
  });

  it("makes a freestanding program without interpreter, with an unexecutable stack and no writable code", async () => {
    const one = tree();
    await one.build(["--target", "bare"]);
    const elf = readFileSync(one.product("bin/bare"));
    // Elf64_Ehdr: e_phoff at 32, e_phentsize at 54, e_phnum at 56; Elf64_Phdr: p_type, p_flags first.
    const headers = Array.from({ length: elf.readUInt16LE(56) }, (_, index) => {
      const at = Number(elf.readBigUInt64LE(32)) + index * elf.readUInt16LE(54);
      return { type: elf.readUInt32LE(at), flags: elf.readUInt32LE(at + 4) };
    });
    const [interpreter, stack, load, relro] = [3, 0x6474e551, 1, 0x6474e552];
    expect(elf.readUInt16LE(16)).toBe(3); // ET_DYN: loaded at a random address
    expect(headers.some(({ type }) => type === interpreter)).toBe(false);
    expect(headers.filter(({ type }) => type === stack).map(({ flags }) => flags)).toEqual([6]);
    expect(headers.some(({ type }) => type === relro)).toBe(true);
    expect(headers.filter(({ type, flags }) => type === load && (flags & 3) === 3)).toEqual([]);
  });

  it("waits while another build of the tree runs", async () => {
    const one = tree();
    one.write(
      "scripts/native/number.mjs",
      "export const number = () => new Promise((done) => setTimeout(done, 1500));\n",
    );
    const first = one.build();
    for (let turn = 0; turn < 2000 && !existsSync(one.product("lock")); turn += 1) {
      await new Promise((wake) => setTimeout(wake, 5));
    }
    const second = await one.build();
    expect(second).toEqual({ code: 0, output: "waiting for another native build of this clone\n" });
    expect(await first).toMatchObject({ code: 0 });
  });

  it("says what to install when there is no compiler", async () => {
    const one = tree();
    expect(await one.build([], { ...process.env, CC: "no-such-compiler" })).toEqual({
      code: 69,
      output: "flowcell: no C compiler found. Install gcc or clang (Debian: apt install gcc), or set CC.\n",
    });
  });

  it("refuses targets and options it does not know", async () => {
    const one = tree();
    expect(await one.build(["--target", "mian"])).toEqual({
      code: 64,
      output: 'flowcell: no native target "mian"; there are number, main, bare\n',
    });
    expect(await one.build(["--fast"])).toMatchObject({
      code: 64,
      output: expect.stringContaining('"--fast"'),
    });
  });
});
