// What a reviewer is told about a manifest.
import { parseManifest } from "@flowcell/manifest";
import { profileLimits } from "@flowcell/protocol";
import { describe, expect, test } from "vitest";
import { reachDifference, reachOf } from "./reach.js";

function reach(manifest: object): ReturnType<typeof reachOf> {
  const parsed = parseManifest(JSON.stringify({ format: 1, id: "f", ...manifest }));
  if (!parsed.ok) throw new Error(parsed.problems.map(({ message }) => message).join("; "));
  const budgets = { ...profileLimits("flow"), ...parsed.manifest.budgets };
  return reachOf(parsed.manifest, budgets);
}

const remarks = (grants: object): readonly string[] => reach({ grants }).remarks;

describe("remarks", () => {
  test("a flow without grants has none", () => {
    expect(reach({}).remarks).toEqual([]);
  });

  test("name any host, patterns, any port and methods that change things", () => {
    expect(
      remarks({
        net: [
          { host: "*", methods: ["GET", "DELETE"] },
          { host: "**.b.example", port: 443 },
        ],
      }),
    ).toEqual([
      "grants.net[0]: any host on the internet",
      "grants.net[0]: any port of *",
      "grants.net[0]: may change things at * (DELETE)",
      "grants.net[1]: every host that **.b.example stands for",
      "grants.net: patterns without any rule that denies",
    ]);
    expect(remarks({ net: [{ host: "a.example", port: 443 }] })).toEqual([]);
  });

  test("name a rule that denies what an earlier one allows", () => {
    const deny = { host: "bad.a.example", action: "deny" };
    const allow = { host: "*.a.example", port: 443 };
    expect(remarks({ net: [allow, deny] })).toContain(
      "grants.net[1]: denies bad.a.example, but grants.net[0] comes first and allows some of it",
    );
    expect(remarks({ net: [deny, allow] }).join()).not.toContain("comes first");
    expect(remarks({ net: [{ host: "*.b.example", port: 443 }, deny] }).join()).not.toContain("comes first");
    expect(
      remarks({
        net: [
          { ...allow, port: 80 },
          { ...deny, port: 443 },
        ],
      }).join(),
    ).not.toContain("comes first");
    expect(
      remarks({
        net: [
          { host: "x.a.example", port: 1 },
          { host: "**.a.example", action: "deny" },
        ],
      }).join(),
    ).toContain("comes first");
  });

  test("name writing, whole mounts, and mounts without a rule that takes away", () => {
    expect(remarks({ fs: [{ mount: "m", access: "write" }] })).toEqual([
      "grants.fs[0]: writes, replaces and deletes files in all of /m",
      "grants.fs: /m has no rule that denies or protects",
    ]);
    const guarded = [
      { mount: "m", access: "read" },
      { mount: "m", path: "private", access: "deny" },
    ];
    expect(remarks({ fs: guarded })).toEqual(["grants.fs[0]: reads all of /m"]);
    expect(remarks({ fs: [{ mount: "m", path: "in", access: "read" }] })).toEqual([]);
  });

  test("name secrets, wide tools, files that can be sent, and a flow that may start itself", () => {
    const told = remarks({
      net: [{ host: "a.example", port: 443 }],
      fs: [{ mount: "m", path: "in", access: "read" }],
      secrets: [{ name: "token", hosts: ["a.example"], header: "Authorization" }],
      tools: ["calendar.*", "mail.send"],
      flows: ["f"],
    });
    expect(told).toEqual([
      'grants.secrets: uses the secret "token" at a.example',
      "grants.fs and grants.net: what it reads from files can be sent to those hosts",
      'grants.tools: "calendar.*" is every tool of that name, later ones too',
      "grants.flows: it may start itself",
    ]);
  });

  test("name budgets beyond the usual ones", () => {
    expect(reach({ budgets: { cpuMs: 5000, hostCalls: 5 } }).remarks).toEqual([
      "budgets.cpuMs: 5000, more than the usual 1000",
    ]);
  });
});

describe("difference", () => {
  test("is empty for the same reach, and tells another order of network rules", () => {
    const one = { host: "a.example", port: 443 };
    const two = { host: "b.example", port: 443 };
    const before = reach({ grants: { net: [one, two] } });
    expect(reachDifference(before, before, "h")).toEqual({ approvedHash: "h", added: [], removed: [] });
    expect(reachDifference(before, reach({ grants: { net: [two, one] } }), "h")).toMatchObject({
      added: ["net: the rules stand in another order"],
      removed: [],
    });
  });

  test("has what is new and what is gone, the trigger too", () => {
    const before = reach({ grants: { kv: { maxBytes: 10 } } });
    const after = reach({ trigger: { kind: "event", name: "a.b" }, grants: { tools: ["t"] } });
    expect(reachDifference(before, after, "h")).toMatchObject({
      added: ["tool: t", "trigger: event a.b"],
      removed: ["kv: 10 bytes", "trigger: manual"],
    });
  });
});
