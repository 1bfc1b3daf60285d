// Tests of how escape probes are read and judged. The probes themselves run in the doctor's whole-process test.
import type { WelcomeFacts } from "@flowcell/protocol";
import { describe, expect, test } from "vitest";
import { compile } from "./compile.js";
import { differingFact, judgeAct, type ProbeAct, parseActs, readAttempt } from "./escape-probes.js";
import { FAKE_WORKER, fakeHost, fakeSources, fakeUse } from "./fake-host.js";
import { requirePlan } from "./plan.js";
import { defaultPolicy } from "./policy.js";
import { probe } from "./probe.js";
import { FACT_NAMES } from "./welcome.js";

const act: ProbeAct = {
  name: "open-file",
  proves: "filesystem_deny",
  control: "ok|ENOENT",
  landlock: "EACCES",
  confined: "SIGSYS",
};
const did = (outcome: string) => ({ ready: true, outcome });
const didNot = (outcome: string) => ({ ready: false, outcome });

describe("the pair of attempts", () => {
  test("refused only when it succeeds unconfined and is refused confined", () => {
    expect(judgeAct(act, did("ok"), did("SIGSYS"))).toBe("refused");
    expect(judgeAct({ ...act, control: "executed" }, did("executed"), did("SIGSYS"))).toBe("refused");
    expect(judgeAct({ ...act, control: "SIGUSR2" }, did("SIGUSR2"), did("SIGSYS"))).toBe("refused");
  });

  test("a failure unconfined proves nothing", () => {
    expect(judgeAct(act, did("ENOENT"), did("SIGSYS"))).toBe("refused_only");
    expect(
      judgeAct({ ...act, control: "SIGSEGV", confined: "SIGSEGV" }, did("SIGSEGV"), did("SIGSEGV")),
    ).toBe("refused_only");
  });

  test("anything but the listed outcome is an escape, whatever the other attempt did", () => {
    for (const unconfined of [
      did("ok"),
      did("ENOENT"),
      didNot("unavailable ENOSYS"),
      didNot("exit 66 (procfs)"),
    ]) {
      expect(judgeAct(act, unconfined, did("ok"))).toBe("escaped");
      expect(judgeAct(act, unconfined, did("EACCES"))).toBe("escaped");
      expect(judgeAct(act, unconfined, did("exit 0"))).toBe("escaped");
    }
  });

  test("an attempt that did not take place proves nothing", () => {
    expect(judgeAct(act, did("ok"), didNot("exit 90 (landlock_missing)"))).toBe("inconclusive");
    expect(judgeAct(act, didNot("exit 66 (procfs)"), did("SIGSYS"))).toBe("inconclusive");
    expect(judgeAct(act, did("EPERM"), did("SIGSYS"))).toBe("inconclusive");
    expect(judgeAct(act, didNot("unavailable EAFNOSUPPORT"), didNot("unavailable EAFNOSUPPORT"))).toBe(
      "unavailable",
    );
  });

  test("what a worker may do, and what nobody can deny, is no evidence", () => {
    const allowed = { ...act, proves: "admitted", control: "ok", confined: "ok" };
    expect(judgeAct(allowed, did("ok"), did("ok"))).toBe("allowed");
    expect(judgeAct(allowed, did("ok"), did("SIGSYS"))).toBe("escaped");
  });
});

describe("what a probe says", () => {
  test.each<[string, string, number | null, ReturnType<typeof did>]>([
    ["ready\nok\n", "exit 0", 0, did("ok")],
    ["ready\nEACCES\n", "exit 0", 0, did("EACCES")],
    ["ready\n", "SIGSYS", null, did("SIGSYS")],
    ["ready\nok\n", "SIGSYS", null, did("SIGSYS")],
    ["ready\n", "exit 9", 9, did("exit 9")],
    ["ready\n", "exit 0", 0, did("exit 0")],
    ["unavailable EAFNOSUPPORT\n", "exit 3", 3, didNot("unavailable EAFNOSUPPORT")],
    ["", "exit 90", 90, didNot("exit 90 (landlock_missing)")],
    ["", "SIGKILL", null, didNot("SIGKILL")],
    ["Ready\nok\n", "exit 0", 0, didNot("exit 0")],
    ["", "exit 3", 3, didNot("exit 3")],
  ])("%j, then %s", (output, end, code, attempt) => {
    expect(readAttempt(output, end, code)).toEqual(attempt);
  });

  test("what is shown is short and printable", () => {
    const { outcome } = readAttempt(`ready\n\x1b[31m${"x".repeat(1000)}\n`, "exit 0", 0);
    expect(outcome.length).toBe(64);
    expect(outcome).toMatch(/^[\x20-\x7e]+$/);
  });
});

describe("the probe speaks for the worker", () => {
  test("as long as both attest the same, but for what is each binary's own", () => {
    const result = compile(defaultPolicy("flow"), probe(fakeSources(fakeHost("root"))), FAKE_WORKER);
    if (!result.ok) throw new Error(JSON.stringify(result.failure));
    const { expected } = requirePlan(result.plan, fakeUse("root"));
    const own = {
      buildId: "0".repeat(64),
      fingerprint: "0".repeat(64),
      limitData: 1,
      limitCpu: 1,
      limitStack: 1,
    };
    expect(differingFact({ ...expected, ...own }, expected)).toBeUndefined();
    for (const fact of FACT_NAMES.filter((name) => !(name in own))) {
      const value = typeof expected[fact] === "boolean" ? !expected[fact] : "other";
      expect(differingFact({ ...expected, ...own, [fact]: value } as WelcomeFacts, expected)).toBe(fact); // wrong on purpose
    }
  });
});

describe("the list", () => {
  test("is one complete object a line", () => {
    expect(
      parseActs(`${JSON.stringify(act)}\n${JSON.stringify({ ...act, name: "two" })}\n`).map(
        (one) => one.name,
      ),
    ).toEqual(["open-file", "two"]);
  });

  test.each([
    ["nothing", ""],
    ["a cut line", JSON.stringify(act)],
    ["no JSON", "open-file\n"],
    ["null", "null\n"],
    ["a missing field", `${JSON.stringify({ ...act, confined: undefined })}\n`],
    ["an empty field", `${JSON.stringify({ ...act, control: "" })}\n`],
    ["a number", `${JSON.stringify({ ...act, proves: 1 })}\n`],
    ["too many lines", `${JSON.stringify(act)}\n`.repeat(2_001)],
  ])("%s is refused", (_name, text) => {
    expect(() => parseActs(text)).toThrow(/the probe's list/);
  });
});
