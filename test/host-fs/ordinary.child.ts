// What an ordinary user's process is refused by the system, seen through the functions. Started by reach.test.ts as such a
// user; prints the answers. Its argument is an empty folder of that user's.

import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Scripted } from "./ground.js";

const data = process.argv[2] ?? "";
writeFileSync(join(data, "closed"), "secret", { mode: 0 });
writeFileSync(join(data, "readonly"), "old", { mode: 0o444 });
mkdirSync(join(data, "locked"), { mode: 0 });
mkdirSync(join(data, "full"), { mode: 0o500 });
const script = new Scripted({
  mounts: new Map([["data", data]]),
  rules: [
    { mount: "data", access: "write" },
    { mount: "data", path: "locked/inner", access: "deny" },
  ],
  alwaysDenied: [],
  bodyBytes: 1000,
});
const answers = {
  user: process.geteuid?.(),
  readClosed: await script.call("read", "/data/closed"),
  appendClosed: await script.call("append", "/data/closed", "x"),
  writeReadonly: await script.call("write", "/data/readonly", "new"),
  readLocked: await script.call("read", "/data/locked/x"),
  readDenied: await script.call("read", "/data/locked/inner/x"),
  writeFull: await script.call("write", "/data/full/new", "x"),
  statClosed: await script.call("stat", "/data/closed"),
  list: await script.call("list", "/data/full"),
};
script.close();
chmodSync(join(data, "locked"), 0o700);
chmodSync(join(data, "full"), 0o700);
console.log(JSON.stringify(answers));
