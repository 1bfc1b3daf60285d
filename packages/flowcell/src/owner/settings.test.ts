// The settings of a data folder: what is typed, what is kept, what is refused.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { serviceSettings } from "./open.js";
import { noSettings, readSettings, secretLookup, withOptions, writeSettings } from "./settings.js";

const scratch = mkdtempSync(join(tmpdir(), "settings-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const file = join(scratch, "settings.json");
const none = { mount: [], allowNet: [], secret: [], caFile: undefined };

function text(content: unknown): string {
  const path = join(scratch, "given.json");
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

describe("options", () => {
  test("are added to what is kept and read back the same", () => {
    mkdirSync(join(scratch, "in"), { recursive: true });
    const first = withOptions(noSettings, {
      ...none,
      mount: [`in=${join(scratch, "in")}`],
      allowNet: ["127.0.0.1:80"],
    });
    const both = withOptions(first, {
      ...none,
      secret: ["token=env:MY_TOKEN"],
      allowNet: ["127.0.0.1:80", "intranet"],
    });
    writeSettings(file, both);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readSettings(file)).toEqual({
      format: 1,
      mounts: { in: join(scratch, "in") },
      privateHosts: ["127.0.0.1:80", "intranet"],
      caFile: null,
      secrets: { token: "env:MY_TOKEN" },
    });
  });

  test.each([
    ["no name", { mount: ["./x"] }, /write name=FOLDER/],
    ["no such folder", { mount: ["x=./is-not-there"] }, /no such folder/],
    ["a file for a folder", { mount: [`x=${text("")}`] }, /is no folder/],
    ["a URL for a host", { allowNet: ["http://127.0.0.1:80"] }, /write a host, or host:port, without http/],
    ["a file without certificates", { caFile: text("nothing") }, /holds no PEM certificate/],
  ])("%s is a mistake", (_what, typed, message) => {
    expect(() => withOptions(noSettings, { ...none, ...typed })).toThrow(message);
  });

  test("a secret on the command line is refused without being repeated", () => {
    let message = "";
    try {
      withOptions(noSettings, { ...none, secret: ["token=hunter2-s3cret"] });
    } catch (error) {
      message = String(error);
    }
    expect(message).toContain("token=env:VARIABLE");
    expect(message).not.toContain("hunter2");
  });
});

describe("the file", () => {
  test("nothing is said when there is none", () => {
    expect(readSettings(join(scratch, "none.json"))).toEqual(noSettings);
  });

  test.each([
    ["no JSON", "{", /is not JSON/],
    ["an unknown key", { ...noSettings, mount: {} }, /unknown key "mount"; did you mean mounts\?/],
    ["a relative mount", { ...noSettings, mounts: { a: "b" } }, /mounts\.a/],
    ["a secret's value", { ...noSettings, secrets: { a: "s3cret" } }, /must be env:NAME/],
    ["another format", { ...noSettings, format: 2 }, /format/],
    [
      "a store that holds nothing",
      { ...noSettings, storeBytes: 1000 },
      /storeBytes: must be at least 1048576/,
    ],
    ["part of a byte", { ...noSettings, storeBytes: 5_000_000.5 }, /storeBytes/],
    ["a misspelt bound", { ...noSettings, storeByte: 1 }, /did you mean storeBytes\?/],
  ])("%s is refused", (_what, content, message) => {
    expect(() => readSettings(text(content))).toThrow(message);
  });
});

test("the store's bound is kept when options are added, and is what the service gets", () => {
  const storeBytes = 5_000_000;
  const settings = withOptions(readSettings(text({ ...noSettings, storeBytes })), {
    ...none,
    allowNet: ["intranet"],
  });
  expect(settings).toMatchObject({ storeBytes, privateHosts: ["intranet"] });
  expect(serviceSettings(settings, {}).storeBytesMost).toBe(storeBytes);
  expect(serviceSettings(noSettings, {})).not.toHaveProperty("storeBytesMost");
});

test("a secret is looked up when it is used, and an empty one is none", () => {
  const environment: NodeJS.ProcessEnv = { MINE: "one" };
  const lookup = secretLookup({ ...noSettings, secrets: { a: "env:MINE", b: "env:OTHER" } }, environment);
  expect(lookup("a")).toBe("one");
  environment["MINE"] = "two";
  expect(lookup("a")).toBe("two");
  environment["MINE"] = "";
  expect([lookup("a"), lookup("b"), lookup("constructor")]).toEqual([undefined, undefined, undefined]);
  expect(readFileSync(file, "utf8")).not.toContain("two");
});

test("a mount or a secret that is typed twice is a mistake, one that was kept gets the new meaning", () => {
  const typed = { mount: [], allowNet: [], secret: [], caFile: undefined };
  expect(() => withOptions(noSettings, { ...typed, mount: ["a=/tmp", "b=/tmp", "a=/"] })).toThrow(
    "--mount a=… is given twice",
  );
  expect(() => withOptions(noSettings, { ...typed, secret: ["k=env:A", "k=env:A"] })).toThrow(
    "--secret k=… is given twice",
  );
  const kept = { ...noSettings, mounts: { a: "/var" } };
  expect(withOptions(kept, { ...typed, mount: ["a=/tmp"] }).mounts).toEqual({ a: "/tmp" });
});
