// Tests of the probe on hosts made of texts, and once on the real one.
import { describe, expect, test } from "vitest";
import { CONTROLS } from "./controls.js";
import {
  BOOT_ID,
  type FakeKernel,
  fakeHost,
  fakeSources,
  KERNEL_FACTS,
  parentStatus,
  statusText,
} from "./fake-host.js";
import type { KernelFacts } from "./probe.js";
import { type HostCapabilities, probe, readKernelFacts } from "./probe.js";

function codes(host: HostCapabilities): string[] {
  return host.blockers.map((blocker) => blocker.code);
}

function changed(
  change: (kernel: FakeKernel) => void,
  user: "root" | "ordinary" = "ordinary",
): HostCapabilities {
  const kernel = fakeHost(user);
  change(kernel);
  return probe(fakeSources(kernel));
}

function selfStatus(user: "root" | "ordinary", lines: Record<string, string>): HostCapabilities {
  return changed((kernel) => {
    kernel.texts.set("/proc/self/status", statusText({ ...parentStatus(user), ...lines }));
  }, user);
}

describe("a host that can confine", () => {
  test.each(["root", "ordinary"] as const)("is available to %s, with a word on every control", (user) => {
    const host = probe(fakeSources(fakeHost(user)));
    expect(host.blockers).toEqual([]);
    expect(host.available).toBe(true);
    expect(host.isolation).toBe("process");
    expect(host.controls.map((one) => one.control)).toEqual([...CONTROLS]);
    expect(host.facts.bootId).toBe(BOOT_ID);
    for (const status of host.controls) {
      if (status.state === "enforced") expect(status.layers.length).toBeGreaterThan(0);
      else expect(status.missing).not.toBe("");
    }
  });

  test("identity is dropped by root and only partly by an ordinary user", () => {
    const state = (user: "root" | "ordinary"): string | undefined =>
      probe(fakeSources(fakeHost(user))).controls.find((one) => one.control === "identity_dropped")?.state;
    expect(state("root")).toBe("enforced");
    expect(state("ordinary")).toBe("partial");
  });

  test("no control is ever reported that nobody built", () => {
    const host = probe(fakeSources(fakeHost("root")));
    const absent = host.controls.filter((one) => one.state === "absent").map((one) => one.control);
    expect(absent).toEqual(["network_filter", "privacy_disclaim"]);
  });

  test("Landlock is named as a layer only for what its ABI denies", () => {
    const layers = (landlockAbi: number, control: string): readonly string[] =>
      probe(fakeSources(fakeHost("root"), { landlockAbi })).controls.find((one) => one.control === control)
        ?.layers ?? [];
    expect(layers(0, "filesystem_deny")).toEqual(["seccomp"]);
    expect(layers(1, "filesystem_deny")).toContain("landlock");
    expect(layers(3, "network_deny")).not.toContain("landlock");
    expect(layers(4, "network_deny")).toContain("landlock");
    expect(layers(5, "signal_deny")).not.toContain("landlock");
    expect(layers(6, "signal_deny")).toContain("landlock");
  });
});

describe("a host that cannot", () => {
  test.each(["darwin", "win32", "freebsd"])("%s has no backend, and no control is enforced", (platform) => {
    const host = probe({ ...fakeSources(fakeHost("root")), platform });
    expect(codes(host)).toEqual(["backend_not_built"]);
    expect(host.available).toBe(false);
    expect(host.controls.every((one) => one.state === "absent")).toBe(true);
  });

  test.each<[string, Partial<KernelFacts>, string]>([
    ["no filters", { seccompFilter: false }, "seccomp_missing"],
    ["no thread synchronisation", { seccompThreadSync: false }, "seccomp_missing"],
    ["no way to kill a process", { seccompKillProcess: false }, "seccomp_missing"],
    ["no close_range", { closeRange: false }, "kernel_too_old"],
  ])("%s is a blocker", (_name, facts, code) => {
    const host = probe(fakeSources(fakeHost("root"), facts));
    expect(codes(host)).toEqual([code]);
    expect(host.controls.every((one) => one.state === "absent")).toBe(true);
    expect(host.blockers[0]?.remedy).not.toBe("");
  });

  test("without Landlock the backend stays available: whether that is enough is the policy's to say", () => {
    expect(
      probe(fakeSources(fakeHost("root"), { landlockAbi: 0, landlockProblem: "it is off" })).available,
    ).toBe(true);
  });

  test("an unknown processor is a blocker", () => {
    expect(codes(probe({ ...fakeSources(fakeHost("root")), arch: "riscv64" }))).toEqual([
      "architecture_unsupported",
    ]);
  });

  test("a launcher library that is not built is a blocker and leaves no other guess", () => {
    const sources = fakeSources(fakeHost("root"));
    const host = probe({
      ...sources,
      kernel: () => {
        throw new Error("launcher.so does not exist");
      },
    });
    expect(codes(host)).toEqual(["launcher_unusable"]);
    expect(host.blockers[0]?.message).toContain("launcher.so does not exist");
  });

  test("a covered, foreign, unreadable or garbled /proc is a blocker", () => {
    const covered = changed((kernel) => {
      kernel.procfs = false;
    });
    expect(codes(covered)).toEqual(["proc_unusable"]);
    expect(codes(selfStatus("root", { Pid: "1" }))).toEqual(["proc_unusable"]);
    expect(codes(changed((kernel) => kernel.texts.set("/proc/self/status", { fails: "EACCES" })))).toEqual([
      "proc_unusable",
    ]);
    expect(codes(changed((kernel) => kernel.texts.set("/proc/self/status", "garbage\n")))).toEqual([
      "proc_unusable",
    ]);
    expect(codes(changed((kernel) => kernel.texts.set("/proc/self/status", "x".repeat(100_000))))).toEqual([
      "proc_unusable",
    ]);
  });

  test("a kernel that does not count filters is too old", () => {
    expect(codes(selfStatus("root", { Seccomp_filters: "" }))).toEqual(["kernel_too_old"]);
  });

  test.each(["hidepid=1", "hidepid=2", "hidepid=invisible", "hidepid=ptraceable", "gid=4,hidepid=2"])(
    "/proc with %s blocks an ordinary parent, who could not see its workers",
    (option) => {
      const mount = `25 30 0:24 / /proc rw shared:13 - proc proc rw,${option}\n`;
      const hide = (kernel: FakeKernel): void => void kernel.texts.set("/proc/self/mountinfo", mount);
      expect(codes(changed(hide))).toEqual(["proc_hidden"]);
      expect(codes(changed(hide, "root"))).toEqual([]);
    },
  );

  test("only the visible mount on /proc counts", () => {
    const mounts = [
      "25 30 0:24 / /proc rw - proc proc rw,hidepid=2",
      "26 30 0:25 / /proc rw - proc proc rw,hidepid=0",
      "27 30 0:25 / /srv/proc rw - proc proc rw,hidepid=2",
      "",
    ].join("\n");
    expect(codes(changed((kernel) => kernel.texts.set("/proc/self/mountinfo", mounts)))).toEqual([]);
  });

  test("mixed identities are refused", () => {
    expect(codes(selfStatus("ordinary", { Uid: "1000\t0\t0\t0" }))).toEqual(["identity_mixed"]);
    expect(codes(selfStatus("ordinary", { Gid: "1000\t1000\t5\t1000" }))).toEqual(["identity_mixed"]);
  });

  test("root that cannot stop being root is refused", () => {
    expect(codes(selfStatus("root", { CapEff: "0000000000000080" }))).toEqual(["identity_not_droppable"]);
    expect(codes(selfStatus("root", { CapEff: "0000000000000000" }))).toEqual(["identity_not_droppable"]);
    const unmapped = changed(
      (kernel) => kernel.texts.set("/proc/self/gid_map", "         0     100000      1000\n"),
      "root",
    );
    expect(codes(unmapped)).toEqual(["identity_not_droppable"]);
    const mapped = changed((kernel) => kernel.texts.set("/proc/self/uid_map", "0 100000 65536\n"), "root");
    expect(codes(mapped)).toEqual([]);
  });
});

describe("answers of the kernel", () => {
  const yes: Parameters<typeof readKernelFacts>[0] = {
    os: "linux",
    arch: "x64",
    kernelRelease: "6.18.0",
    landlockAbi: 7,
    landlockError: null,
    seccompFilter: true,
    seccompTsync: true,
    seccompKillProcess: true,
    mdwe: true,
    closeRangeCloexec: true,
    procfs: true,
    pageBytes: 4096,
    yamaPtraceScope: 1,
    pipeUserPagesSoft: null,
    self: {
      uid: 0,
      gid: 0,
      capEffective: null,
      seccompMode: 0,
      noNewPrivs: false,
      dumpable: 1,
      personality: 0,
      hardLimits: { dataBytes: null, cpuSeconds: 60, stackBytes: null, openFiles: null },
    },
  };

  test("a plain yes to everything is a kernel that has everything", () => {
    expect(readKernelFacts(yes)).toEqual({ ...KERNEL_FACTS, hardCpuSeconds: 60 });
  });

  test.each(["seccompFilter", "seccompTsync", "seccompKillProcess", "mdwe", "closeRangeCloexec"] as const)(
    "%s: no, or a refusal to answer, counts as no",
    (name) => {
      for (const answer of [false, "EPERM", "ENOSYS"]) {
        const facts = readKernelFacts({ ...yes, [name]: answer });
        // One for this answer, and Landlock that nobody withholds.
        expect(Object.values(facts).filter((value) => value === false)).toHaveLength(2);
      }
    },
  );

  test("close_range without its newer flag is there", () => {
    expect(readKernelFacts({ ...yes, closeRangeCloexec: "EINVAL" }).closeRange).toBe(true);
  });

  test.each([
    ["ENOSYS", "not built into", false],
    ["EOPNOTSUPP", "not enabled at boot", false],
    ["EPERM", "refused (EPERM)", true],
    ["EACCES", "refused (EACCES)", true],
  ])("Landlock that answers %s", (landlockError, problem, refused) => {
    const facts = readKernelFacts({ ...yes, landlockAbi: 0, landlockError });
    expect(facts.landlockProblem).toContain(problem);
    expect(facts.landlockRefused).toBe(refused);
  });
});

test.runIf(process.platform === "linux")(
  "this host answers, and nothing it says is taken for more than it is",
  () => {
    const host = probe({ ...fakeSources(fakeHost("root")), kernel: () => KERNEL_FACTS });
    expect(host.available).toBe(true);
    const real = probe();
    expect(real.facts.os).toBe("linux");
    for (const blocker of real.blockers) expect(blocker.remedy).not.toBe("");
    if (real.available) expect(real.facts.self?.pid).toBe(process.pid);
  },
);
