#!/usr/bin/env node
// The command `flowcell`. Committed as it is, so that npm can link it before anything is built; all it does is to find
// the built command line and hand over.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const built = new URL("../dist/cli.mjs", import.meta.url);
if (existsSync(fileURLToPath(built))) {
  const { main } = await import(built.href);
  await main(process.argv.slice(2));
} else {
  process.stderr.write("flowcell: not built yet; run npm start (or npm run build) in the clone.\n");
  process.exitCode = 70;
}
