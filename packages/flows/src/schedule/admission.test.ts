// Which runs begin: places per flow and key, turns between flows, and the bound over all.
import { describe, expect, test } from "vitest";
import { Admission, type AdmissionRun } from "./admission.js";

function run(runId: string, over: Partial<AdmissionRun> = {}): AdmissionRun {
  return { runId, flow: "f", key: "", limit: 1, notBefore: 0, deduplicationKey: null, ...over };
}

describe("places of one flow and key", () => {
  test("runs go one at a time, oldest first", () => {
    const admission = new Admission(10);
    for (const id of ["a", "b", "c"]) admission.add(run(id));
    expect(admission.next(0)).toEqual(["a"]);
    expect(admission.next(0)).toEqual([]);
    admission.remove("a");
    expect(admission.next(0)).toEqual(["b"]);
  });

  test("runs with another key do not wait for each other, and the oldest goes first", () => {
    const admission = new Admission(1);
    admission.add(run("a", { key: "x" }));
    admission.add(run("b", { key: "x" }));
    admission.add(run("c", { key: "y" }));
    expect(admission.next(0)).toEqual(["a"]);
    admission.remove("a");
    expect(admission.next(0)).toEqual(["b"]);
    admission.remove("b");
    expect(admission.next(0)).toEqual(["c"]);
  });

  test("a suspended run holds its place, one that needs an operator does not", () => {
    const admission = new Admission(10);
    admission.add(run("a"));
    admission.add(run("b"));
    admission.next(0);
    admission.set("a", "suspended");
    expect(admission.next(0)).toEqual([]);
    admission.set("a", "stuck");
    expect(admission.next(0)).toEqual(["b"]);
    expect(admission.full("f", "", 1)).toBe(true);
    admission.remove("b");
    expect(admission.full("f", "", 1)).toBe(false);
  });

  test("a run that is not due yet lets others pass and is told of", () => {
    const admission = new Admission(10);
    admission.add(run("later", { notBefore: 100 }));
    admission.add(run("now"));
    expect(admission.nextDue(0)).toBe(100);
    expect(admission.next(0)).toEqual(["now"]);
    admission.remove("now");
    expect(admission.next(99)).toEqual([]);
    expect(admission.next(100)).toEqual(["later"]);
    expect(admission.nextDue(100)).toBeNull();
  });

  test("who has to go so that one more fits: the oldest, begun before waiting", () => {
    const admission = new Admission(10);
    for (const id of ["a", "b", "c"]) admission.add(run(id));
    admission.next(0);
    expect(admission.oldest("f", "", 1)).toEqual(["a", "b"]);
    expect(admission.oldest("f", "", 3)).toEqual([]);
  });

  test("a reserved run counts, and begins when it is confirmed", () => {
    const admission = new Admission(10);
    admission.reserve(run("a"));
    expect(admission.full("f", "", 1)).toBe(true);
    expect(admission.next(0)).toEqual([]);
    admission.confirm("a");
    expect(admission.next(0)).toEqual(["a"]);
  });

  test("a run is found by its deduplication key while it is unfinished", () => {
    const admission = new Admission(10);
    admission.add(run("a", { deduplicationKey: "k" }));
    expect(admission.withKey("f", "k")).toBe("a");
    expect(admission.withKey("g", "k")).toBeUndefined();
    admission.remove("a");
    expect(admission.withKey("f", "k")).toBeUndefined();
  });
});

describe("over all flows", () => {
  test("flows take turns, however many runs one of them has", () => {
    const admission = new Admission(2);
    for (let index = 0; index < 6; index++) admission.add(run(`a${index}`, { flow: "a", limit: 100 }));
    admission.add(run("b0", { flow: "b", limit: 100 }));
    admission.add(run("b1", { flow: "b", limit: 100 }));
    const order: string[] = [];
    for (let begun = admission.next(0); begun.length > 0; begun = admission.next(0)) {
      order.push(...begun);
      for (const id of begun) admission.remove(id);
    }
    expect(order).toEqual(["a0", "b0", "a1", "b1", "a2", "a3", "a4", "a5"]);
  });

  test("suspended runs do not count, and going on is counted and not asked", () => {
    const admission = new Admission(1);
    admission.add(run("a", { flow: "a" }));
    admission.add(run("b", { flow: "b" }));
    admission.add(run("c", { flow: "c" }));
    expect(admission.next(0)).toEqual(["a"]);
    admission.set("a", "suspended");
    expect(admission.next(0)).toEqual(["b"]);
    admission.set("a", "active");
    expect(admission.active).toBe(2);
    admission.remove("b");
    expect(admission.next(0)).toEqual([]);
    admission.remove("a");
    expect(admission.next(0)).toEqual(["c"]);
  });

  test("a held flow's runs wait until it is let go", () => {
    const admission = new Admission(5);
    admission.add(run("a"));
    admission.hold("f", true);
    expect(admission.next(0)).toEqual([]);
    expect(admission.nextDue(0)).toBeNull();
    admission.hold("f", false);
    expect(admission.next(0)).toEqual(["a"]);
  });

  test("runs that had begun before a restart hold their places", () => {
    const admission = new Admission(5);
    admission.add(run("a"), "suspended");
    admission.add(run("b"));
    expect(admission.next(0)).toEqual([]);
    expect(admission.waiting("f")).toBe(1);
    admission.remove("a");
    expect(admission.next(0)).toEqual(["b"]);
  });
});
