import { expect, fakeHost, test } from "flowcell:test";
import flow from "./flow.js";

function children(end: (input: { branch: string; bookings: number[] }) => object): object {
  const runs = new Map<string, object>();
  return {
    "flow.start": async (_flow: string, input: { branch: string; bookings: number[] }) => {
      runs.set(input.branch, end(input));
      return { runId: input.branch };
    },
    "flow.wait": async (runId: string) => runs.get(runId),
  };
}

const sum = (numbers: number[]): number => numbers.reduce((all, one) => all + one, 0);

test("starts a child for each branch and adds up what they answer", async () => {
  const host = fakeHost(
    children(({ bookings }) => ({
      ok: true,
      status: "completed",
      value: { total: sum(bookings) },
      error: null,
    })),
  );
  const result = await flow({ branches: { berlin: [100, 50], hamburg: [7] } }, host);
  expect(result).toEqual({ totals: { berlin: 150, hamburg: 7 }, all: 157, failed: [] });
  expect(host.flow.start).toHaveBeenCalledTimes(2);
});

test("a child that failed is told and not counted", async () => {
  const host = fakeHost(
    children(({ branch }) =>
      branch === "berlin"
        ? {
            ok: false,
            status: "script_error",
            value: null,
            error: { code: "uncaught", name: "Error", message: "no bookings" },
          }
        : { ok: true, status: "completed", value: { total: 7 }, error: null },
    ),
  );
  const result = await flow({ branches: { berlin: [], hamburg: [7] } }, host);
  expect(result).toEqual({ totals: { hamburg: 7 }, all: 7, failed: ["berlin: no bookings"] });
});
