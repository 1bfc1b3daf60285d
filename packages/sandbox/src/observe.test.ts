// Tests of the observation: an orderly worker agrees in every row; each line the kernel could say otherwise refuses it.
import type { WelcomeFacts } from "@flowcell/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compile } from "./compile.js";
import { isControl } from "./controls.js";
import {
  addWorker,
  FAKE_WORKER,
  type FakeKernel,
  fakeHost,
  fakeProc,
  fakeSources,
  fakeUse,
  limitsText,
  statusText,
  WORKER_PATH,
  WORKER_PID,
  workerStatus,
} from "./fake-host.js";
import {
  contradictions,
  OBSERVATION_RULES,
  OBSERVATIONS,
  type Observation,
  type ObservationName,
  observeWorker,
} from "./observe.js";
import { type PlanState, requirePlan } from "./plan.js";
import { defaultPolicy } from "./policy.js";
import { probe } from "./probe.js";

type User = "root" | "ordinary";
const FOLDER = `/proc/${WORKER_PID}`;

function setUp(user: User): { plan: PlanState; kernel: FakeKernel } {
  const kernel = fakeHost(user);
  const result = compile(defaultPolicy("flow"), probe(fakeSources(kernel)), FAKE_WORKER);
  if (!result.ok) throw new Error(JSON.stringify(result.failure));
  const plan = requirePlan(result.plan, fakeUse(user));
  addWorker(kernel, user, plan.expected);
  return { plan, kernel };
}

function observe(user: User, change: (kernel: FakeKernel, expected: WelcomeFacts) => void): Observation {
  const { plan, kernel } = setUp(user);
  change(kernel, plan.expected);
  return observeWorker(plan, WORKER_PID, fakeProc(kernel));
}

/** Names of the rows that refuse the worker. */
function against(
  user: User,
  change: (kernel: FakeKernel, expected: WelcomeFacts) => void,
): ObservationName[] {
  return contradictions(observe(user, change)).map((row) => row.name);
}

function status(user: User, lines: Record<string, string>): (kernel: FakeKernel) => void {
  return (kernel) =>
    void kernel.texts.set(`${FOLDER}/status`, statusText({ ...workerStatus(user), ...lines }));
}

describe("an orderly worker", () => {
  test("agrees in every row that an ordinary parent can see; the rest is skipped with a reason", () => {
    const rows = observe("ordinary", () => {});
    expect(contradictions(rows)).toEqual([]);
    expect(rows.map((row) => row.name)).toEqual([...OBSERVATIONS]);
    const skipped = rows.filter((row) => row.state === "skipped");
    expect(skipped.map((row) => row.name)).toEqual(["mappings", "descriptors", "environment", "executable"]);
    for (const row of skipped) expect(row.note).not.toBe("");
    expect(rows.find((row) => row.name === "memory_unreadable")?.state).toBe("agrees");
  });

  test("agrees in every row that root can see; that the map is closed to others root cannot test", () => {
    const rows = observe("root", () => {});
    expect(contradictions(rows)).toEqual([]);
    const skipped = rows.filter((row) => row.state === "skipped");
    expect(skipped.map((row) => row.name)).toEqual(["memory_unreadable"]);
    expect(skipped[0]?.note).toContain("CAP_SYS_PTRACE");
  });

  test("a kernel that does not list children is no contradiction", () => {
    const rows = observe(
      "root",
      (kernel) => void kernel.texts.delete(`${FOLDER}/task/${WORKER_PID}/children`),
    );
    expect(contradictions(rows)).toEqual([]);
    expect(rows.find((row) => row.name === "children")?.state).toBe("skipped");
  });

  test("a kernel without speculation controls is no contradiction, as long as the worker claims none", () => {
    const none = { Speculation_Store_Bypass: "", SpeculationIndirectBranch: "" };
    expect(against("root", status("root", none))).toEqual(["speculation"]);
    const { plan, kernel } = setUp("root");
    status("root", none)(kernel);
    const expected = { ...plan.expected, specStoreBypass: 0, specIndirectBranch: 0 };
    expect(contradictions(observeWorker({ ...plan, expected }, WORKER_PID, fakeProc(kernel)))).toEqual([]);
  });

  test("a parent that itself runs under a filter expects one more", () => {
    const { plan, kernel } = setUp("root");
    const filtered = { ...plan, parent: { ...plan.parent, seccompFilters: 2 } };
    status("root", { Seccomp_filters: "3" })(kernel);
    expect(contradictions(observeWorker(filtered, WORKER_PID, fakeProc(kernel)))).toEqual([]);
    status("root", { Seccomp_filters: "2" })(kernel);
    expect(
      contradictions(observeWorker(filtered, WORKER_PID, fakeProc(kernel))).map((row) => row.name),
    ).toEqual(["seccomp_filters"]);
  });
});

describe.each<User>(["root", "ordinary"])("a worker of %s is refused when the kernel says", (user) => {
  const other = user === "root" ? "0" : "1001";
  const mine = user === "root" ? "65534" : "1000";

  test.each<[Record<string, string>, ObservationName]>([
    [{ Pid: "413" }, "process"],
    [{ Tgid: "77" }, "process"],
    [{ PPid: "1" }, "process"],
    [{ TracerPid: "99" }, "tracer"],
    [{ CoreDumping: "1" }, "tracer"],
    [{ Uid: `${other}\t${other}\t${other}\t${other}` }, "user"],
    [{ Uid: `${mine}\t${mine}\t${other}\t${mine}` }, "user"],
    [{ Gid: `${mine}\t${mine}\t${mine}\t${other}` }, "group"],
    [{ Groups: "4 27 1000 " }, "groups"],
    [{ CapEff: "0000000000000001" }, "capabilities"],
    [{ CapPrm: "0000000000080000" }, "capabilities"],
    [{ CapInh: "8000000000000000" }, "capabilities"],
    [{ CapAmb: "0000000000000400" }, "capabilities"],
    [{ Threads: "2" }, "threads"],
    [{ Threads: "0" }, "threads"],
    [{ NoNewPrivs: "0" }, "no_new_privs"],
    [{ Seccomp: "0" }, "seccomp_mode"],
    [{ Seccomp: "1" }, "seccomp_mode"],
    [{ Seccomp_filters: "0" }, "seccomp_filters"],
    [{ Seccomp_filters: "2" }, "seccomp_filters"],
    [{ SigBlk: "0000000000000001" }, "signals"],
    [{ SigIgn: "0000000000001000" }, "signals"],
    [{ SigCgt: "0000000040000440" }, "signals"],
    [{ Speculation_Store_Bypass: "thread vulnerable" }, "speculation"],
    [{ SpeculationIndirectBranch: "always enabled" }, "speculation"],
  ])("%j", (lines, name) => {
    expect(against(user, status(user, lines))).toEqual([name]);
  });

  test.each([
    "limitCpu",
    "limitData",
    "limitStack",
    "limitCore",
    "limitFsize",
    "limitNproc",
    "limitNofile",
  ] as const)("another %s, or a hard limit that differs from the soft one", (fact) => {
    const name = fact.replace("limit", "limit_").toLowerCase();
    const set =
      (change: (text: string, facts: WelcomeFacts) => string) => (kernel: FakeKernel, facts: WelcomeFacts) =>
        void kernel.texts.set(`${FOLDER}/limits`, change(limitsText(facts), facts));
    expect(
      against(
        user,
        set((_text, facts) => limitsText({ ...facts, [fact]: facts[fact] + 1 })),
      ),
    ).toEqual([name]);
    const label = { limitCpu: "cpu time", limitData: "data size", limitStack: "stack size" }[String(fact)];
    if (label === undefined) return;
    const hard = set((text) =>
      text.replace(new RegExp(`^(Max ${label} +[0-9]+ +)[0-9]+ {2}`, "m"), "$1unlimited  "),
    );
    expect(against(user, hard)).toEqual([name]);
  });

  test("another session, a terminal, or a process that is dead or stopped", () => {
    const stat = (change: (text: string) => string) => (kernel: FakeKernel) => {
      const text = kernel.texts.get(`${FOLDER}/stat`);
      kernel.texts.set(`${FOLDER}/stat`, change(String(text)));
    };
    expect(
      against(
        user,
        stat((text) => text.replace(`77 ${WORKER_PID} ${WORKER_PID} 0`, `77 ${WORKER_PID} 77 0`)),
      ),
    ).toEqual(["session"]);
    expect(
      against(
        user,
        stat((text) => text.replace(`${WORKER_PID} 0 -1`, `${WORKER_PID} 34816 -1`)),
      ),
    ).toEqual(["session"]);
    const zombie = observe(
      user,
      stat((text) => text.replace(" S ", " Z ")),
    );
    expect(zombie.find((row) => row.name === "process")).toMatchObject({
      state: "unreadable",
      note: "the worker has ended",
    });
    expect(
      against(
        user,
        stat((text) => text.replace(" S ", " T ")),
      ),
    ).toEqual(["process"]);
    expect(
      against(
        user,
        stat((text) => text.replace(" 20 0 1 0 ", " 20 0 2 0 ")),
      ),
    ).toEqual(["threads"]);
  });

  test("files that belong to the worker itself: it is dumpable", () => {
    const owned = (kernel: FakeKernel): void =>
      void kernel.identities.set(`${FOLDER}/stat`, { uid: Number(mine), device: 24, inode: 9_001 });
    expect(against(user, owned)).toEqual(["dumpable"]);
  });

  test("that there are children", () => {
    const children = (text: string) => (kernel: FakeKernel) =>
      void kernel.texts.set(`${FOLDER}/task/${WORKER_PID}/children`, text);
    expect(against(user, children("413 "))).toEqual(["children"]);
    expect(against(user, children("garbage"))).toEqual(["children"]);
  });

  test("nothing, because the worker is gone or its texts are closed, cut or garbled", () => {
    const gone = observe(user, (kernel) => {
      for (const path of [...kernel.texts.keys()]) if (path.startsWith(FOLDER)) kernel.texts.delete(path);
      for (const path of [...kernel.identities.keys()])
        if (path.startsWith(FOLDER)) kernel.identities.delete(path);
      kernel.folders.clear();
    });
    expect(contradictions(gone).length).toBeGreaterThan(20);
    expect(gone.find((row) => row.name === "seccomp_mode")?.note).toContain("the worker is gone");
    for (const text of ["", "garbage", "Name:\tworker\n", "x".repeat(100_000)]) {
      const names = against(user, (kernel) => void kernel.texts.set(`${FOLDER}/status`, text));
      expect(names).toContain("seccomp_mode");
      expect(names).toContain("threads");
    }
    expect(
      against(user, (kernel) => void kernel.texts.set(`${FOLDER}/limits`, { fails: "EACCES" })),
    ).toContain("limit_data");
    expect(against(user, (kernel) => void kernel.texts.set(`${FOLDER}/stat`, "412 worker S"))).toEqual([
      "session",
    ]);
  });
});

describe("what only a parent with CAP_SYS_PTRACE sees", () => {
  test("an ordinary parent that can read the memory map has found a dumpable worker", () => {
    expect(against("ordinary", (kernel) => void kernel.texts.set(`${FOLDER}/maps`, ""))).toEqual([
      "memory_unreadable",
    ]);
  });

  test.each([
    ["writable and executable", "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"],
    [
      "shared",
      "7f0000000000-7f0000001000 rw-s 00000000 00:01 5                          /dev/zero (deleted)\n",
    ],
    ["executable without a file", "7f0000000000-7f0000001000 r-xp 00000000 00:00 0 \n"],
    ["garbled", "nonsense\n"],
    ["empty", ""],
  ])("a mapping that is %s refuses the worker", (_name, text) => {
    expect(against("root", (kernel) => void kernel.texts.set(`${FOLDER}/maps`, text))).toEqual(["mappings"]);
  });

  test("a fourth descriptor, a variable or another executable refuses the worker", () => {
    expect(
      against("root", (kernel) => void kernel.folders.set(`${FOLDER}/fd`, ["0", "1", "2", "3"])),
    ).toEqual(["descriptors"]);
    expect(against("root", (kernel) => void kernel.folders.set(`${FOLDER}/fd`, ["0", "2"]))).toEqual([
      "descriptors",
    ]);
    expect(against("root", (kernel) => void kernel.texts.set(`${FOLDER}/environ`, "A=b\0"))).toEqual([
      "environment",
    ]);
    const exe = { uid: 0, device: 65_024, inode: 124 };
    expect(against("root", (kernel) => void kernel.identities.set(`${FOLDER}/exe`, exe))).toEqual([
      "executable",
    ]);
    const sameNumber = { uid: 0, device: 1, inode: 123 };
    expect(against("root", (kernel) => void kernel.identities.set(`${FOLDER}/exe`, sameNumber))).toEqual([
      "executable",
    ]);
    expect(against("root", (kernel) => void kernel.identities.delete(WORKER_PATH))).toEqual(["executable"]);
  });

  test("a security module that keeps even root out only skips those rows", () => {
    const rows = observe("root", (kernel) => {
      kernel.texts.set(`${FOLDER}/maps`, { fails: "EACCES" });
      kernel.texts.set(`${FOLDER}/environ`, { fails: "EPERM" });
      kernel.folders.set(`${FOLDER}/fd`, { fails: "EACCES" });
      kernel.identities.set(`${FOLDER}/exe`, { fails: "EACCES" });
    });
    expect(contradictions(rows)).toEqual([]);
    expect(rows.find((row) => row.name === "memory_unreadable")?.state).toBe("agrees");
  });
});

test("whatever the kernel's texts are, the observation gives every row a state and never throws", () => {
  const paths = ["status", "limits", "stat", "maps", "environ", `task/${WORKER_PID}/children`];
  const answer = fc.oneof(
    fc.string({ maxLength: 300 }),
    fc.constantFrom("ENOENT", "EACCES", "ESRCH", "EIO").map((fails) => ({ fails })),
  );
  fc.assert(
    fc.property(
      fc.constantFrom<User>("root", "ordinary"),
      fc.array(fc.tuple(fc.constantFrom(...paths), answer)),
      (user, changes) => {
        const rows = observe(user, (kernel) => {
          for (const [path, text] of changes) kernel.texts.set(`${FOLDER}/${path}`, text);
        });
        expect(rows.map((row) => row.name)).toEqual([...OBSERVATIONS]);
        for (const row of rows) expect(row.note).not.toBe("it was not looked at");
      },
    ),
  );
});

test("every observation says which controls it speaks for", () => {
  expect(Object.keys(OBSERVATION_RULES)).toEqual([...OBSERVATIONS]);
  for (const { source, rule, controls } of Object.values(OBSERVATION_RULES)) {
    expect(source).not.toBe("");
    expect(rule).not.toBe("");
    for (const control of controls) expect(isControl(control)).toBe(true);
  }
});
