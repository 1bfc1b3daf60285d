// Garbage collection on demand, for tests that compare memory before and after.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");

export const collectGarbage: () => void = runInNewContext("gc");
