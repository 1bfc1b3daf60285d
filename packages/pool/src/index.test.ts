// What `createPool` demands before anything is started.
import { PlanError, SandboxPlan } from "@flowcell/sandbox";
import { describe, expect, it } from "vitest";
import { createPool } from "./index.js";

describe("createPool", () => {
  it("makes no pool from what is no plan of this process", () => {
    const lookalikes = [{}, null, Object.create(SandboxPlan.prototype)] as SandboxPlan[];
    for (const plan of lookalikes) expect(() => createPool({ plan })).toThrow(PlanError);
  });
});
