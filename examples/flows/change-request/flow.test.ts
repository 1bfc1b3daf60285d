import { expect, fakeHost, test } from "flowcell:test";
import flow from "./flow.js";

const request = { host: "api.example.com", why: "prices" };

function world(list: string, approved: boolean): object {
  return {
    "fs.read": async () => list,
    "fs.append": async () => ({ bytes: 1 }),
    "approval.request": async () => ({ approved, value: null, by: "ada" }),
  };
}

test("a yes appends the line once", async () => {
  const host = fakeHost(world("a.example.com\n", true));
  expect(await flow(request, host)).toEqual({ changed: true, by: "ada" });
  expect(host.fs.append).toHaveBeenCalledWith("/config/allowed-hosts.txt", "api.example.com\n");
  expect(host.approval.request).toHaveBeenCalledWith("allow api.example.com", {
    detail: { why: "prices", lines: 1 },
    timeoutMs: 259_200_000,
  });
});

test("a no changes nothing", async () => {
  const host = fakeHost(world("", false));
  expect(await flow(request, host)).toEqual({ changed: false, because: "ada said no" });
  expect(host.fs.append).not.toHaveBeenCalled();
});

test("nobody is asked for what is there", async () => {
  const host = fakeHost(world("api.example.com\n", true));
  expect(await flow(request, host)).toMatchObject({ changed: false });
  expect(host.approval.request).not.toHaveBeenCalled();
});

test("an answer that never comes ends the run", async () => {
  const late = async () => {
    throw new HostError("no answer", { code: "timeout" });
  };
  await expect(
    flow(request, fakeHost({ ...world("", true), "approval.request": late })),
  ).rejects.toMatchObject({ code: "timeout" });
});
