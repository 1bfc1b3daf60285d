// Reads three files below other mounts, where part of the mount `data` is denied. Started by reach.test.ts in a mount
// namespace of its own; its argument is the folder of the mount.

import { Scripted } from "./ground.js";

const script = new Scripted({
  mounts: new Map([["data", process.argv[2] ?? ""]]),
  rules: [
    { mount: "data", access: "read" },
    { mount: "data", path: "hidden", access: "deny" },
  ],
  alwaysDenied: [],
  bodyBytes: 1000,
});
const results: unknown[] = [];
for (const path of ["bound/f", "foreign/f", "plain/f"]) {
  const answer = await script.call("read", `/data/${path}`);
  results.push(answer.ok ? answer.value : answer.code);
}
script.close();
console.log(JSON.stringify(results));
