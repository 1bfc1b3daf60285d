// Tests of the four gates, and of plans that cannot be made in any other way.
import { describe, expect, test } from "vitest";
import { BLOCKER_CODES } from "./blocker.js";
import type { WorkerBuildResult } from "./build.js";
import { type CompileFailure, type CompileResult, compile, formatFailure } from "./compile.js";
import { CONTROLS } from "./controls.js";
import {
  BOOT_ID,
  FAKE_BUILD,
  FAKE_WORKER,
  fakeHost,
  fakeSources,
  fakeUse,
  WORKER_PATH,
} from "./fake-host.js";
import {
  describePlanState,
  makePlan,
  PlanError,
  type PlanState,
  type PlanUse,
  requirePlan,
  SandboxPlan,
} from "./plan.js";
import { defaultPolicy } from "./policy.js";
import { type HostCapabilities, type KernelFacts, LINUX_BACKEND, probe } from "./probe.js";

const HERE = fakeUse("root");

function host(user: "root" | "ordinary" = "root", facts: Partial<KernelFacts> = {}): HostCapabilities {
  return probe(fakeSources(fakeHost(user), facts));
}

function planOf(result: CompileResult): SandboxPlan {
  if (!result.ok) throw new Error(formatFailure(result.failure));
  return result.plan;
}

function stateOf(result: CompileResult, user: "root" | "ordinary" = "root"): PlanState {
  return requirePlan(planOf(result), fakeUse(user));
}

function failureOf(result: CompileResult): CompileFailure {
  if (result.ok) throw new Error("a plan was made");
  return result.failure;
}

function codesOf(result: CompileResult): string[] {
  return failureOf(result).blockers.map((blocker) => blocker.code);
}

describe("a policy that this host can hold", () => {
  test("becomes a plan that holds policy, host, controls and limits", () => {
    const policy = defaultPolicy("flow");
    const state = stateOf(compile(policy, host(), FAKE_WORKER));
    expect(state.policy).toBe(policy);
    expect(state.backend).toBe(LINUX_BACKEND);
    expect(state.bootId).toBe(BOOT_ID);
    expect(state.workerPath).toBe(WORKER_PATH);
    expect(state.args).toEqual([]);
    for (const { control } of state.required) {
      expect(state.controls.find((one) => one.control === control)?.state).toBe("enforced");
    }
  });

  test("demands the whole confinement, however little the policy asks for", () => {
    const little = compile({ version: 1, isolation: "compartment" }, host(), FAKE_WORKER);
    const required = stateOf(little).required.map((one) => one.control);
    const dispensable = new Set(["network_filter", "privacy_disclaim", "identity_dropped"]);
    for (const control of CONTROLS) expect(required.includes(control)).toBe(!dispensable.has(control));
  });

  test("data limit: heap, image, engine stack and 16 MiB; CPU limit: activations times budget, replay and a second", () => {
    const MiB = 1024 * 1024;
    const policy = {
      version: 1,
      limits: { heapBytes: 100 * MiB, cpuMs: 1_500, replayCpuMs: 2_000, activations: 10 },
    };
    const { limits, expected } = stateOf(compile(policy, host(), FAKE_WORKER));
    expect(limits).toEqual({ dataBytes: (100 + 6 + 64 + 16) * MiB, cpuSeconds: 45, stackBytes: 8 * MiB });
    expect([expected.limitData, expected.limitCpu, expected.limitStack]).toEqual([
      limits.dataBytes,
      limits.cpuSeconds,
      limits.stackBytes,
    ]);
  });

  test("expects nobody under root, and the parent's own identity under an ordinary user", () => {
    const under = (user: "root" | "ordinary"): number[] => {
      const { expected } = stateOf(compile(defaultPolicy("flow"), host(user), FAKE_WORKER), user);
      return [expected.uid, expected.gid, expected.groups];
    };
    expect(under("root")).toEqual([65_534, 65_534, 0]);
    expect(under("ordinary")).toEqual([1000, 1000, 2]);
  });

  test("expects the newest Landlock that kernel and worker both know", () => {
    const abi = (landlockAbi: number): number =>
      stateOf(compile(defaultPolicy("flow"), host("root", { landlockAbi }), FAKE_WORKER)).expected
        .landlockAbi;
    expect(abi(3)).toBe(3);
    expect(abi(11)).toBe(11);
    expect(abi(25)).toBe(11);
  });
});

describe("gate 1, the policy", () => {
  test("every problem is a blocker with its path, and later gates are not reached", () => {
    const failure = failureOf(
      compile({ version: 1, limits: { cpuMs: 0 }, landlok: 1 }, host(), { ...missing }),
    );
    expect(failure.gate).toBe("policy");
    expect(failure.blockers).toHaveLength(2);
    expect(failure.blockers.every((blocker) => blocker.code === "policy_invalid")).toBe(true);
    expect(formatFailure(failure)).toContain("limits.cpuMs");
  });
});

const missing: WorkerBuildResult = {
  ok: false,
  message: "worker.json cannot be read",
  remedy: "run `npm run build`",
};

describe("gate 2, the backend", () => {
  test("a host that cannot confine passes its blockers on, before isolation is looked at", () => {
    const result = compile(
      { version: 1, isolation: "machine" },
      host("root", { seccompFilter: false }),
      FAKE_WORKER,
    );
    expect(failureOf(result).gate).toBe("backend");
    expect(codesOf(result)).toEqual(["seccomp_missing"]);
  });

  test.each(["darwin", "win32"])(
    "%s says that there is no backend, not that a worker is missing",
    (platform) => {
      const other = probe({ ...fakeSources(fakeHost("root")), platform });
      expect(codesOf(compile(defaultPolicy("flow"), other, missing))).toEqual(["backend_not_built"]);
      expect(formatFailure(failureOf(compile(defaultPolicy("flow"), other, missing)))).toContain(
        "Nothing was run.",
      );
    },
  );

  test("a worker that was not built is a blocker with its remedy", () => {
    const failure = failureOf(compile(defaultPolicy("flow"), host(), missing));
    expect(failure.blockers[0]).toMatchObject({ code: "worker_not_built", remedy: "run `npm run build`" });
  });

  test("a worker for another processor is refused", () => {
    const other: WorkerBuildResult = {
      ok: true,
      build: { ...FAKE_BUILD, arch: "arm64" },
      workerPath: WORKER_PATH,
    };
    expect(codesOf(compile(defaultPolicy("flow"), host(), other))).toEqual(["worker_for_other_system"]);
  });

  test("a boot that has no name is refused: a plan could not be bound to it", () => {
    const kernel = fakeHost("root");
    kernel.texts.delete("/proc/sys/kernel/random/boot_id");
    expect(codesOf(compile(defaultPolicy("flow"), probe(fakeSources(kernel)), FAKE_WORKER))).toEqual([
      "proc_unusable",
    ]);
  });
});

describe("gate 3, isolation", () => {
  test("more than the backend has is refused, before controls are looked at", () => {
    const result = compile(
      { version: 1, isolation: "machine", require: ["network_filter"] },
      host(),
      FAKE_WORKER,
    );
    expect(failureOf(result).gate).toBe("isolation");
    expect(codesOf(result)).toEqual(["isolation_unavailable"]);
  });
});

describe("gate 4, controls", () => {
  test("Landlock is required unless the operator says otherwise, and the message names both ways out", () => {
    const without = host("root", { landlockAbi: 0, landlockProblem: "it is not built into this kernel" });
    const failure = failureOf(compile(defaultPolicy("flow"), without, FAKE_WORKER));
    expect(failure.gate).toBe("controls");
    expect(failure.blockers).toHaveLength(1);
    expect(failure.blockers[0]).toMatchObject({ control: "filesystem_deny", code: "landlock_missing" });
    expect(formatFailure(failure)).toMatch(/5\.13 or newer.*"dangerLandlockOptional": true/);

    const state = stateOf(
      compile(defaultPolicy("flow", { dangerLandlockOptional: true }), without, FAKE_WORKER),
    );
    expect(state.expected.landlockAbi).toBe(0);
    expect(state.args).toEqual(["--danger-landlock-optional"]);
  });

  test("Landlock that is withheld from this process is no kernel without it, whatever the operator set", () => {
    const refused = {
      landlockAbi: 0,
      landlockProblem: "asking for it is refused (EPERM)",
      landlockRefused: true,
    };
    for (const dangerLandlockOptional of [true, false]) {
      const policy = defaultPolicy("flow", { dangerLandlockOptional });
      const failure = failureOf(compile(policy, host("root", refused), FAKE_WORKER));
      expect(failure.blockers.map((blocker) => blocker.code)).toEqual(["landlock_missing"]);
      expect(failure.blockers[0]?.remedy).toContain("allow the landlock system calls");
    }
  });

  test("where the kernel has Landlock, the operator's switch changes nothing about what is expected", () => {
    const state = stateOf(
      compile(defaultPolicy("flow", { dangerLandlockOptional: true }), host(), FAKE_WORKER),
    );
    expect(state.expected.landlockAbi).toBe(7);
  });

  test("a control that is partial here is refused with what is missing", () => {
    const policy = { version: 1, require: ["identity_dropped"] };
    const failure = failureOf(compile(policy, host("ordinary"), FAKE_WORKER));
    expect(failure.blockers).toHaveLength(1);
    expect(failure.blockers[0]).toMatchObject({ control: "identity_dropped", code: "control_partial" });
    expect(failure.blockers[0]?.message).toContain("an ordinary user cannot change identity");
    expect(compile(policy, host("root"), FAKE_WORKER).ok).toBe(true);
  });

  test.each([
    [{ require: ["network_filter"] }, "network_filter", "control_absent"],
    [{ require: ["privacy_disclaim"] }, "privacy_disclaim", "control_absent"],
    [{ network: { mode: "filtered" } }, "network_filter", "control_absent"],
    [{ network: { mode: "unrestricted" } }, "network_deny", "network_mode_unsupported"],
    [{ filesystem: { mode: "full" } }, "filesystem_deny", "filesystem_mode_unsupported"],
    [
      { filesystem: { mode: "restricted", readable: ["/etc"] } },
      "filesystem_deny",
      "filesystem_mode_unsupported",
    ],
    [{ environment: { inherit: true } }, "environment_empty", "environment_unsupported"],
    [{ environment: { variables: { A: "b" } } }, "environment_empty", "environment_unsupported"],
    [{ limits: { processes: 2 } }, "process_deny", "processes_unsupported"],
  ])("%j is refused", (part, control, code) => {
    const failure = failureOf(compile({ version: 1, ...part }, host(), FAKE_WORKER));
    expect(failure.gate).toBe("controls");
    expect(failure.blockers.map((blocker) => [blocker.control, blocker.code])).toEqual([[control, code]]);
    expect(failure.blockers[0]?.remedy).not.toBe("");
  });

  test.each<[Partial<KernelFacts>, string]>([
    [{ hardDataBytes: 1024 * 1024 }, "memory_limit"],
    [{ hardStackBytes: 1024 * 1024 }, "memory_limit"],
    [{ hardCpuSeconds: 5 }, "cpu_limit"],
    [{ hardCpuSeconds: 0 }, "cpu_limit"],
  ])("a host that may give a worker only %j is refused", (facts, control) => {
    const failure = failureOf(compile(defaultPolicy("flow"), host("root", facts), FAKE_WORKER));
    expect(failure.blockers.map((blocker) => [blocker.control, blocker.code])).toEqual([
      [control, "host_limit_too_low"],
    ]);
  });

  test("everything that blocks is said at once", () => {
    const policy = {
      version: 1,
      network: { mode: "unrestricted" },
      limits: { processes: 3 },
      require: ["privacy_disclaim"],
    };
    const codes = codesOf(compile(policy, host("root", { hardCpuSeconds: 5 }), FAKE_WORKER));
    expect(codes).toEqual([
      "network_mode_unsupported",
      "processes_unsupported",
      "control_absent",
      "host_limit_too_low",
    ]);
    for (const code of codes) expect(BLOCKER_CODES).toContain(code);
  });
});

describe("plans cannot be made, copied or kept", () => {
  const plan = planOf(compile(defaultPolicy("flow"), host(), FAKE_WORKER));

  test("the genuine plan is accepted, here and now", () => {
    expect(requirePlan(plan, HERE).backend).toBe(LINUX_BACKEND);
  });

  test.each<[string, unknown]>([
    ["nothing", undefined],
    ["null", null],
    ["a text", "plan"],
    ["an empty object", {}],
    ["a copy of its properties", { ...plan }],
    ["a structured clone", structuredClone(plan)],
    ["an object with its prototype", Object.create(SandboxPlan.prototype)],
    ["an object that inherits from it", Object.create(plan)],
    ["a proxy of it", new Proxy(plan, {})],
    ["its state", requirePlan(plan, HERE)],
    ["its description", describePlanState(requirePlan(plan, HERE))],
  ])("%s is no plan", (_name, value) => {
    expect(() => requirePlan(value, HERE)).toThrow(PlanError);
    expect(() => requirePlan(value, HERE)).toThrow(/this is no plan of this process/);
  });

  test("a plan made by another copy of this package is foreign", async () => {
    const other: typeof import("./plan.js") = await import("./plan.js?another-copy" as string);
    const foreign = other.makePlan({ ...requirePlan(plan, HERE) });
    expect(other.requirePlan(foreign, HERE).backend).toBe(LINUX_BACKEND);
    expect(() => requirePlan(foreign, HERE)).toThrow(/no plan of this process/);
  });

  test("the constructor is closed", () => {
    const construct = SandboxPlan as unknown as new (...args: unknown[]) => unknown;
    expect(() => new construct()).toThrow(PlanError);
    expect(() => new construct(Symbol("maker"))).toThrow(PlanError);
  });

  test("it cannot be written down", () => {
    expect(() => JSON.stringify(plan)).toThrow(/cannot be serialised/);
    expect(() => JSON.stringify({ pool: { plan } })).toThrow(PlanError);
    expect(Object.keys(plan)).toEqual([]);
  });

  test("it cannot be changed", () => {
    expect(() => Object.assign(plan, { backend: "none" })).toThrow(TypeError);
    const state = requirePlan(plan, HERE);
    expect(() => Object.assign(state, { workerPath: "/bin/sh" })).toThrow(TypeError);
    expect(() => Object.assign(state.expected, { landlockAbi: 0 })).toThrow(TypeError);
    expect(() => Object.assign(state.limits, { dataBytes: 1 })).toThrow(TypeError);
  });

  test("another boot, backend, identity and format are refused by their names", () => {
    const reason = (use: PlanUse, one: SandboxPlan = plan): string => {
      try {
        requirePlan(one, use);
      } catch (error) {
        if (error instanceof PlanError) return error.reason;
      }
      return "accepted";
    };
    expect(reason({ ...HERE, bootId: "another" })).toBe("other_boot");
    expect(reason({ ...HERE, bootId: "" })).toBe("other_boot");
    expect(reason({ ...HERE, backend: "macos-seatbelt" })).toBe("other_backend");
    expect(reason(fakeUse("ordinary"))).toBe("other_identity");
    const old = makePlan({ ...requirePlan(plan, HERE), format: 0 });
    expect(reason(HERE, old)).toBe("other_format");
    const unbound = makePlan({ ...requirePlan(plan, HERE), bootId: "" });
    expect(reason({ ...HERE, bootId: "" }, unbound)).toBe("other_boot");
  });
});
