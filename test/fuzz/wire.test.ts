/**
 * Fuzzers of the wire: the frame decoder in TypeScript and its twin in C judge the same streams, valid ones and mutations
 * of them, and must agree on every frame and on the error's name; headers and value texts are mutated too. The C side runs
 * under ASan and UBSan. FUZZ_SEED repeats a run, FUZZ_ROUNDS makes it long.
 */

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import {
  encodeFrame,
  type MessageName,
  messageNames,
  messageRow,
  parseWelcome,
  sizeCeilings,
  untrusted,
} from "@flowcell/protocol";
import { beforeAll, describe, expect, it } from "vitest";
import { fuzzRounds, fuzzSeed, Random } from "../../packages/protocol/src/testing/random.js";
import { judge, type StreamCase, whole } from "../../packages/protocol/src/testing/verdict.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const program = (name: string): string => `${root}worker-native/build/sanitize/test/${name}`;

beforeAll(() => {
  const build = ["--sanitize", "--target", "wire-test", "--target", "wire-fuzz-test"];
  const { status, stdout, stderr } = spawnSync(process.execPath, ["scripts/build-native.mjs", ...build], {
    cwd: root,
  });
  if (status !== 0) throw new Error(`the native build failed:\n${stdout}${stderr}`);
});

const phaseNumbers = { starting: 1, idle: 2, running: 4 } as const;
const phases = ["starting", "idle", "running"] as const;

/** A record as `wire-test --verdicts` reads it; see the head of frame_test.c. */
function record({ sender, phase, limits, stream }: StreamCase): Buffer {
  const head = Buffer.alloc(32);
  head[0] = sender === "worker" ? 1 : 0;
  head[1] = phaseNumbers[phase];
  const { outputBytes, resultBytes, inputBytes, valueBytes, bodyBytes, sourceBytes } = limits;
  [outputBytes, resultBytes, inputBytes, valueBytes, bodyBytes, sourceBytes].forEach((limit, at) => {
    head.writeUInt32LE(limit, 4 + 4 * at);
  });
  head.writeUInt32LE(stream.byteLength, 28);
  return Buffer.concat([head, stream]);
}

/** What C says, a list of lines for each case. */
function verdictsOfC(cases: readonly StreamCase[]): string[][] {
  const { status, stdout, stderr } = spawnSync(program("wire-test"), ["--verdicts"], {
    input: Buffer.concat(cases.map(record)),
    maxBuffer: 1 << 30,
  });
  if (status !== 0) throw new Error(`wire-test --verdicts failed:\n${stderr}`);
  const verdicts: string[][] = [[]];
  for (const line of String(stdout).trimEnd().split("\n")) {
    verdicts.at(-1)?.push(line);
    if (!line.startsWith("frame ")) verdicts.push([]);
  }
  return verdicts.slice(0, -1);
}

const texts = ["", "{}", '{"position":1,"name":"sleep"}\n[10]', "é€😀", "\0", "{}\n", "x".repeat(120)];

function validFrame(random: Random, name: MessageName): Buffer {
  const row = messageRow(name);
  const header = random.pick(texts).slice(0, row.text.fixed);
  const { least, most } = row.attachments;
  const count = most === 0 ? 0 : least + random.below(Math.min(3, most - least + 1));
  const each = count === 0 ? 0 : Math.floor(Math.max(24, row.attachments.bytes.fixed) / count);
  const attachments = Array.from({ length: count }, () =>
    Buffer.alloc(random.below(each + 1), random.below(256)),
  );
  const devalue = row.value !== "never" && random.chance(2);
  const frame = encodeFrame({
    type: row.type as Parameters<typeof encodeFrame>[0]["type"],
    header,
    attachments,
  }); // a row's
  if (devalue) frame[5] = 1;
  return frame;
}

const interesting = [0, 1, 7, 8, 9, 0x7f, 0x80, 0xff, 0x100, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff];

function mutated(random: Random, stream: Buffer): Buffer {
  if (stream.length === 0) return stream;
  const at = random.below(stream.length);
  const copy = Buffer.from(stream);
  switch (random.below(8)) {
    case 0:
      copy[at] = (copy[at] ?? 0) ^ (1 << random.below(8));
      return copy;
    case 1:
      copy[at] = random.below(256);
      return copy;
    case 2:
      copy[at] = (copy[at] ?? 0) + (random.chance(2) ? 1 : -1);
      return copy;
    case 3: {
      const place = random.pick([0, 4, 5, 6, 8, at]);
      if (place + 4 <= copy.length) copy.writeUInt32LE(random.pick(interesting), place);
      return copy;
    }
    case 4:
      return copy.subarray(0, at);
    case 5:
      return Buffer.concat([copy.subarray(0, at), copy.subarray(at + 1)]);
    case 6:
      return Buffer.concat([copy.subarray(0, at), Buffer.from([random.below(256)]), copy.subarray(at)]);
    default:
      return Buffer.concat([copy, copy.subarray(0, at)]);
  }
}

function streamCase(random: Random): StreamCase {
  const sender = random.chance(2) ? "worker" : "parent";
  const phase = random.pick(phases);
  const own = messageNames.filter(
    (name) => messageRow(name).sender === sender && messageRow(name).phases.includes(phase),
  );
  const frames = Array.from({ length: random.below(5) }, () =>
    validFrame(random, random.pick(own.length === 0 || random.chance(12) ? messageNames : own)),
  );
  let stream: Buffer = Buffer.concat(frames);
  for (let count = random.below(3); count > 0; count--) stream = mutated(random, stream);
  const small = () => random.below(200);
  const limits = random.chance(3)
    ? {
        outputBytes: small(),
        resultBytes: small(),
        inputBytes: small(),
        valueBytes: small(),
        bodyBytes: small(),
        sourceBytes: small(),
      }
    : sizeCeilings;
  return { sender, phase, limits, stream };
}

describe("the frame decoders", () => {
  it("agree with each other, and with themselves under any chunking", () => {
    const seed = fuzzSeed();
    const random = new Random(seed);
    const cases = Array.from({ length: fuzzRounds(6000) }, () => streamCase(random));
    const inC = verdictsOfC(cases);
    expect(inC, `seed ${seed}`).toHaveLength(cases.length);
    const seen = new Set<string>();
    cases.forEach((input, index) => {
      const where = `seed ${seed}, case ${index}: ${JSON.stringify({ ...input, stream: Buffer.from(input.stream).toString("hex") })}`;
      const lines = judge(input, whole).lines;
      expect(lines, where).toEqual(inC[index]);
      expect(judge(input, (left) => 1 + random.below(left)).lines, where).toEqual(lines);
      expect(judge(input, () => 1 + random.below(14)).lines, where).toEqual(lines);
      seen.add(lines.at(-1) ?? "");
    });
    // The cases reach every error that bytes can cause; a fuzzer that stops at the first check proves little.
    expect(seen.size, `seed ${seed}: ${[...seen].join(" ")}`).toBeGreaterThanOrEqual(13);
  });
});

describe("the C frame reader", () => {
  it("passes its unit tests under sanitizers", () => {
    const { status, stderr } = spawnSync(program("wire-test"));
    expect(String(stderr)).toBe("");
    expect(status).toBe(0);
  });

  it("reads nothing outside of a mutated stream and walks every good frame to its end", () => {
    const seed = fuzzSeed();
    const { status, stdout, stderr } = spawnSync(program("wire-fuzz-test"), ["1", String(seed)]);
    expect({ status, stderr: String(stderr) }, String(stdout)).toEqual({ status: 0, stderr: "" });
  });

  it("writes a Welcome that TypeScript reads", () => {
    const { status, stdout } = spawnSync(program("wire-test"), ["--welcome"]);
    expect(status).toBe(0);
    const facts = parseWelcome(untrusted(String(stdout)));
    expect(facts).toMatchObject({
      protocol: 1,
      os: "linux",
      arch: process.arch,
      seccompLength: 57,
      landlockAbi: 7,
      seccompTsync: true,
      dumpable: false,
      capAmbient: "8000000000000001",
      limitData: 2 ** 40,
      limitCpu: -1,
      specStoreBypass: 2 ** 32 - 1,
    });
    expect(facts.seccompSha256).toBe(`abcd${"0".repeat(60)}`);
  });
});
