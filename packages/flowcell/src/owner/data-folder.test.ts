// Where the data folder is, and which folders are refused.
import { chmodSync, chownSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { dataFolderPath, openDataFolder } from "./data-folder.js";
import { ConfigurationError } from "./failures.js";

const scratch = mkdtempSync(join(tmpdir(), "data-folder-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe("the path", () => {
  test.each([
    ["an option before all", "/a", { FLOWCELL_DATA: "/b", XDG_STATE_HOME: "/c" }, 1000, "/a"],
    ["the variable before the default", undefined, { FLOWCELL_DATA: "/b", XDG_STATE_HOME: "/c" }, 1000, "/b"],
    [
      "the state folder of the user",
      undefined,
      { XDG_STATE_HOME: "/c", HOME: "/home/a" },
      1000,
      "/c/flowcell",
    ],
    [
      "an empty variable is none",
      undefined,
      { FLOWCELL_DATA: "", XDG_STATE_HOME: "", HOME: "/home/a" },
      1000,
      "/home/a/.local/state/flowcell",
    ],
    [
      "a relative state folder is ignored",
      undefined,
      { XDG_STATE_HOME: "c", HOME: "/home/a" },
      1000,
      "/home/a/.local/state/flowcell",
    ],
    ["root's own place", undefined, { XDG_STATE_HOME: "/c", HOME: "/root" }, 0, "/var/lib/flowcell"],
  ])("%s", (_what, option, environment, uid, path) => {
    expect(dataFolderPath(option, environment, uid)).toBe(path);
  });
});

describe("the folder", () => {
  test("is made for its owner alone, with the folders above it", () => {
    const path = join(scratch, "new/inner");
    const folder = openDataFolder(path, true);
    expect(statSync(path).mode & 0o777).toBe(0o700);
    expect(folder.storeFile.startsWith(folder.path)).toBe(true);
    expect(openDataFolder(path, false)).toEqual(folder);
  });

  test("is not made unless that was asked for", () => {
    const path = join(scratch, "none");
    expect(() => openDataFolder(path, false)).toThrow(
      /there is no data folder .*none; flowcell install makes it/,
    );
  });

  test.each([0o750, 0o705, 0o701, 0o770])("is refused when others may enter it (%o)", (mode) => {
    const path = mkdtempSync(join(scratch, "open-"));
    chmodSync(path, mode);
    expect(() => openDataFolder(path, true)).toThrow(/others may enter it .*chmod 700/);
    chmodSync(path, 0o700);
    expect(openDataFolder(path, true).path).toBe(path);
  });

  test("is judged where a link leads", () => {
    const target = mkdtempSync(join(scratch, "target-"));
    const link = join(scratch, "link");
    symlinkSync(target, link);
    expect(openDataFolder(link, false).path).toBe(target);
    chmodSync(target, 0o755);
    expect(() => openDataFolder(link, false)).toThrow(ConfigurationError);
  });

  test("a file is none", () => {
    const file = join(scratch, "file");
    writeFileSync(file, "", { mode: 0o600 });
    expect(() => openDataFolder(file, false)).toThrow(/is no folder/);
  });

  test("of another user is refused", () => {
    const isRoot = process.getuid?.() === 0;
    const path = isRoot ? mkdtempSync(join(scratch, "other-")) : "/";
    if (isRoot) chownSync(path, 65_534, 65_534);
    expect(() => openDataFolder(path, false)).toThrow(isRoot ? /belongs to user 65534/ : /belongs to user 0/);
  });
});
