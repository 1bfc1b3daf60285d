/** Welcome: every fact required, typed, and no other. */

import { describe, expect, it } from "vitest";
import { ProtocolError } from "./protocol-error.js";
import { untrusted } from "./untrusted.js";
import {
  isWelcomeFact,
  parseWelcome,
  type WelcomeFacts,
  type WelcomeFieldKind,
  welcomeFields,
  welcomeHeader,
} from "./welcome.js";

const digest = "0123456789abcdef".repeat(4);

const facts: WelcomeFacts = {
  protocol: 1,
  buildId: digest,
  fingerprint: digest,
  os: "linux",
  arch: "x64",
  seccompSha256: digest,
  seccompLength: 60,
  seccompTsync: true,
  landlockAbi: 7,
  noNewPrivs: true,
  dumpable: false,
  mdwe: true,
  threads: 1,
  uid: 65534,
  gid: 65534,
  groups: 0,
  capEffective: "0000000000000000",
  capPermitted: "0000000000000000",
  capInheritable: "0000000000000000",
  capAmbient: "8000000000000001",
  limitCore: 0,
  limitData: 2 ** 40,
  limitCpu: -1,
  limitStack: 8 << 20,
  limitNofile: 3,
  limitFsize: 0,
  limitNproc: 0,
  descriptors: 7,
  environmentCount: 0,
  specStoreBypass: 0,
  specIndirectBranch: 9,
};

const wrong: { readonly [kind in WelcomeFieldKind]: readonly unknown[] } = {
  protocol: [-1, "1", null, 2 ** 32],
  sha256: ["", digest.toUpperCase(), digest.slice(1), `${digest}0`, `${digest}\n`, 0, null],
  sha256Text: ["", digest.toUpperCase(), digest.slice(1), `${digest}0`, 0, null],
  bits64: ["0", "0x00000000000000", "00000000000000000", "000000000000000G", 0, null],
  boolean: [0, 1, "true", null],
  uint32: [-1, 2 ** 32, 0.5, "1", null, true, 1e300],
  limit: [-2, 2 ** 53, 0.5, "1", null],
  mask: [-1, 2 ** 53, "7", null],
  os: ["Linux", "windows", "", 1, null],
  arch: ["x86_64", "", 1, null],
};

function detailOf(header: string): string {
  try {
    parseWelcome(untrusted(header));
  } catch (error) {
    if (error instanceof ProtocolError && error.name === "bad_header") return error.detail;
    throw error;
  }
  throw new Error("nothing was thrown");
}

describe("parseWelcome", () => {
  it("reads back what welcomeHeader writes", () => {
    expect(parseWelcome(untrusted(welcomeHeader(facts)))).toEqual(facts);
  });

  it("demands every field", () => {
    for (const { name } of welcomeFields) {
      const rest = Object.fromEntries(Object.entries(facts).filter(([field]) => field !== name));
      expect(detailOf(JSON.stringify(rest))).toBe(`Welcome lacks ${name}`);
    }
  });

  it("refuses a wrong value in any field, by the field's name", () => {
    for (const { name, kind } of welcomeFields) {
      for (const value of wrong[kind]) {
        expect(isWelcomeFact(kind, value)).toBe(false);
        expect(detailOf(JSON.stringify({ ...facts, [name]: value }))).toBe(`Welcome.${name}`);
      }
    }
  });

  it("refuses a field that no row declares, __proto__ among them", () => {
    expect(detailOf(JSON.stringify({ ...facts, extra: 1 }))).toContain("no row declares");
    expect(detailOf(welcomeHeader(facts).replace("{", '{"__proto__":{},'))).toContain("no row declares");
  });

  it("does not take facts from a prototype", () => {
    expect(detailOf(`{"__proto__":${welcomeHeader(facts)}}`)).toBe("Welcome lacks protocol");
  });

  it("refuses what is no object", () => {
    for (const header of ["", "null", "[]", "1", '"x"', "{", "[{}]"])
      expect(detailOf(header)).toContain("Welcome is not");
  });
});
