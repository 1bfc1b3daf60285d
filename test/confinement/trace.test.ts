// The tracer and its judge, tried on the probe's acts: what they admit, what they miss, what they find.

import { beforeAll, describe, expect, it } from "vitest";
import { type Arch, seccompTable } from "./filter.js";
import { build, exitCodes, product } from "./harness.js";
import { judgeTraces, parseTrace, startTraced, type Trace, traceProgram } from "./trace.js";

const table = seccompTable();
const arch: Arch = process.arch === "arm64" ? "arm64" : "x64";
const traced = "--test-deviation=traced";

beforeAll(() => build("probe", "probe-deviating", "tracer"));

function act(name: string): Trace {
  return traceProgram(
    product("test/tracer"),
    [product("test/probe-deviating"), "--confined", name, traced],
    "",
  );
}

describe("a trace", () => {
  it("shows the calls after the filter is on, and only those", () => {
    const trace = act("admitted-madvise");
    expect(trace).toMatchObject({ exit: 0, signal: 0, filtered: true, killedBy: null });
    expect(new Set(trace.calls.map((call) => call.name))).toEqual(
      new Set(["write", "madvise", "exit_group"]),
    );
  });

  it("names the call that the filter killed", () => {
    expect(act("getpid")).toMatchObject({ exit: -1, signal: 31, filtered: true, killedBy: "getpid" });
  });

  it("is refused by a shipped binary, which does not run under a tracer", () => {
    const trace = traceProgram(product("test/tracer"), [product("bin/probe"), "--confined", "getpid"], "");
    expect(trace).toMatchObject({ exit: exitCodes().get("tracer"), filtered: false, calls: [] });
  });

  it("passes the program's bytes through in both directions", async () => {
    const { child, trace } = startTraced(product("test/tracer"), [
      product("test/probe-deviating"),
      "--facts",
      traced,
    ]);
    let said = "";
    for await (const chunk of child.stdout.setEncoding("utf8")) {
      said += String(chunk);
      if (said.endsWith("\n")) child.stdin.end("anything");
    }
    expect(JSON.parse(said)).toMatchObject({ seccompTsync: true });
    expect(await trace).toMatchObject({ exit: 0, filtered: true });
  });

  it("without an end is an error", () => {
    expect(() => parseTrace("")).toThrow("the trace has no end");
    expect(() =>
      parseTrace('{"number":0,"name":"read","args":["0x0","0x0","0x0","0x0","0x0","0x0"],"count":1}\n'),
    ).toThrow("the trace has no end");
  });
});

describe("the judge", () => {
  const admitted = ["read", "write", "mprotect-write", "mprotect-none", "madvise", "clock", "exit"];

  it("finds every row and value shown by the admitted acts", () => {
    const traces = admitted.map((name) => act(`admitted-${name}`));
    expect(judgeTraces(table, arch, traces)).toEqual({ refused: [], unneeded: [] });
  });

  it("names the row and the value that nothing showed", () => {
    const without = admitted.filter((name) => name !== "clock" && name !== "mprotect-none");
    const verdict = judgeTraces(
      table,
      arch,
      without.map((name) => act(`admitted-${name}`)),
    );
    expect(verdict.unneeded).toEqual(["mprotect prot 0", "clock_gettime", "clock_gettime clock 3"]);
  });

  it("names a call that no row admits", () => {
    expect(judgeTraces(table, arch, [act("getpid")]).refused).toEqual([
      "getpid(0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
    ]);
    expect(judgeTraces(table, arch, [act("clock-monotonic")]).refused).toHaveLength(1);
  });
});
