import { expect, test } from "flowcell:test";
import flow from "./flow.js";

test("adds up", async () => {
  expect(await flow({ branch: "berlin", bookings: [100, -20] })).toEqual({ branch: "berlin", total: 80 });
});

test("a branch without bookings is a mistake", async () => {
  await expect(flow({ branch: "berlin", bookings: [] })).rejects.toThrow("berlin has no bookings");
});
