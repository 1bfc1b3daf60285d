// Tests of the one door between a launched process and the first byte of a script.
import { untrusted, type WelcomeFacts, welcomeHeader } from "@flowcell/protocol";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type Acceptance, acceptWorker } from "./accept.js";
import { type CompileResult, compile } from "./compile.js";
import { CONTROLS } from "./controls.js";
import {
  addWorker,
  BOOT_ID,
  FAKE_WORKER,
  type FakeKernel,
  fakeHost,
  fakeProc,
  fakeSources,
  parentId,
  statusText,
  WORKER_PID,
  workerStatus,
} from "./fake-host.js";
import { launchState } from "./launch.js";
import { PlanError, type SandboxPlan } from "./plan.js";
import { defaultPolicy, type SandboxPolicy } from "./policy.js";
import { type KernelFacts, probe } from "./probe.js";

// The boot that plans are bound to is read from the real kernel; here it is the fake host's.
const boot = vi.hoisted(() => ({ id: "" }));
vi.mock("./proc-reader.js", async (original) => {
  const real = await original<typeof import("./proc-reader.js")>();
  return { ...real, hostProc: { ...real.hostProc, text: () => `${boot.id}\n` } };
});
boot.id = BOOT_ID;

afterEach(() => void vi.restoreAllMocks());

type User = "root" | "ordinary";

function planOf(result: CompileResult): SandboxPlan {
  if (!result.ok) throw new Error(JSON.stringify(result.failure));
  return result.plan;
}

interface Scene {
  readonly plan: SandboxPlan;
  readonly kernel: FakeKernel;
  readonly expected: WelcomeFacts;
  accept(header?: string): Acceptance;
}

function scene(
  user: User,
  policy: SandboxPolicy = defaultPolicy("flow"),
  facts: Partial<KernelFacts> = {},
): Scene {
  const kernel = fakeHost(user);
  vi.spyOn(process, "geteuid").mockReturnValue(parentId(user));
  vi.spyOn(process, "getegid").mockReturnValue(parentId(user));
  const plan = planOf(compile(policy, probe(fakeSources(kernel, facts)), FAKE_WORKER));
  const { expected } = launchState(plan);
  addWorker(kernel, user, expected);
  const accept = (header = welcomeHeader(expected)): Acceptance =>
    acceptWorker(plan, WORKER_PID, untrusted(header), fakeProc(kernel));
  return { plan, kernel, expected, accept };
}

describe("an orderly worker", () => {
  test.each<User>(["root", "ordinary"])("of %s is accepted and its confinement is plain data", (user) => {
    const acceptance = scene(user).accept();
    if (!acceptance.ok) throw new Error(acceptance.refusal.message);
    const { confinement } = acceptance;
    expect(JSON.parse(JSON.stringify(confinement))).toEqual(confinement);
    expect(Object.isFrozen(confinement.layers)).toBe(true);
    expect(confinement.layers.map((layer) => layer.layer)).toContain("seccomp");
    expect(confinement.layers.map((layer) => layer.layer)).toContain("landlock");
    expect(Object.keys(confinement.controls)).toEqual([...CONTROLS]);
    expect(confinement.tier).toBe(2);
    expect(JSON.stringify(confinement).length).toBeLessThan(4_000);
  });

  test("does not claim layers that this kernel has not", () => {
    const without = scene("root", defaultPolicy("flow", { dangerLandlockOptional: true }), {
      landlockAbi: 0,
      landlockProblem: "it is not built into this kernel",
      memoryDenyWriteExecute: false,
    }).accept();
    if (!without.ok) throw new Error(without.refusal.message);
    const layers = without.confinement.layers.map((layer) => layer.layer);
    expect(layers).not.toContain("landlock");
    expect(layers).not.toContain("mdwe");
    expect(without.confinement.notes.join()).toContain("dangerLandlockOptional");
  });

  test("of an ordinary user keeps that user's identity, and the result says that this is partial", () => {
    const acceptance = scene("ordinary").accept();
    if (!acceptance.ok) throw new Error(acceptance.refusal.message);
    expect(acceptance.confinement.controls["identity_dropped"]).toEqual({ state: "partial", evidence: 0 });
  });
});

describe("a worker is refused", () => {
  test("for a wrong fact, by its name, before the kernel is asked about it", () => {
    const { accept, expected } = scene("root");
    const acceptance = accept(welcomeHeader({ ...expected, landlockAbi: 6 }));
    expect(acceptance).toMatchObject({
      ok: false,
      observation: [],
      refusal: {
        reason: "welcome_refused",
        fact: "landlockAbi",
        controls: ["filesystem_deny", "network_deny"],
      },
    });
  });

  test.each([
    ["no JSON", "welcome"],
    ["a list", "[]"],
    ["an empty object", "{}"],
    ["a prototype", '{"__proto__":{}}'],
  ])("for a Welcome that is %s", (_name, header) => {
    const acceptance = scene("root").accept(header);
    expect(acceptance).toMatchObject({
      ok: false,
      claimed: null,
      refusal: { reason: "welcome_refused", fact: "form" },
    });
  });

  test("for a missing and for an additional field", () => {
    const { accept, expected } = scene("root");
    const { mdwe: _left, ...rest } = expected;
    expect(accept(JSON.stringify(rest))).toMatchObject({ ok: false, refusal: { fact: "form" } });
    expect(accept(JSON.stringify({ ...expected, more: 1 }))).toMatchObject({
      ok: false,
      refusal: { fact: "form" },
    });
  });

  test.each<User>(["root", "ordinary"])(
    "of %s whose claim the kernel contradicts, by what was seen",
    (user) => {
      const { accept, kernel } = scene(user);
      kernel.texts.set(`/proc/${WORKER_PID}/status`, statusText({ ...workerStatus(user), Seccomp: "0" }));
      const acceptance = accept();
      if (acceptance.ok) throw new Error("accepted");
      expect(acceptance.refusal).toMatchObject({ reason: "observation_failed", fact: "seccomp_mode" });
      expect(acceptance.refusal.controls).toContain("syscall_filter");
      expect(acceptance.refusal.message).toContain("the kernel says seccomp_mode: 0");
    },
  );

  test("that is gone", () => {
    const { plan, expected } = scene("root");
    const nobody = acceptWorker(
      plan,
      WORKER_PID,
      untrusted(welcomeHeader(expected)),
      fakeProc(fakeHost("root")),
    );
    expect(nobody).toMatchObject({ ok: false, refusal: { reason: "observation_failed", fact: "process" } });
  });

  test("and never judged without a genuine plan", () => {
    const { plan, expected } = scene("root");
    const copy: unknown = Object.create(plan);
    expect(() => acceptWorker(copy as SandboxPlan, WORKER_PID, untrusted(welcomeHeader(expected)))).toThrow(
      PlanError,
    ); // a forgery on purpose
  });
});
