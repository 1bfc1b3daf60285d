// What the native build makes. One entry per product; scripts/build-native.mjs does the rest.
//
//  name         of the product and for --target
//  kind         freestanding-exe  the worker and the probe: no C library (see compile.mjs)
//               shared-lib        loaded into Node: lib/NAME.so
//               hosted-exe        unit tests, fixtures, tools: bin/NAME, or in `folder`
//               object-set        objects only, for those who depend on it
//               step              the function `entry` of `module`, called with the BuildContext, makes files by itself
//                                 and resolves to { objects?, includeDirs? } (absolute paths) for those who depend
//                                 on it
//  sources      folders or files below worker-native; a folder means its .c and .S files for this platform without
//               `*_test.c` (compile.mjs, expandSources)
//  includeDirs  below worker-native; `src` and `generated` are always there
//  flags        after the flavour's own ("gcc:-fx" for that compiler only); fileFlags: by source file; linkFlags;
//               libraries
//  dependsOn    targets built first; their objects and include folders are used
//  os           the systems the target exists on; absent: all
//  folder       of hosted executables
//  plainOnly    has no sanitizer build
//  test         built by --tests only, not by a plain build. One whose name ends in -test is a unit test: it runs
//               without arguments and its exit code says whether all is well

/** gcc turns a loop that copies bytes into a call of memcpy, which inside memcpy is an endless recursion. */
const MEM_FLAGS = ["-fno-builtin", "gcc:-fno-tree-loop-distribute-patterns"];

/** The same holds for the functions of libm. */
const BASE_FILE_FLAGS = { "src/base/mem.c": MEM_FLAGS, "src/base/math.c": ["-fno-builtin"] };

/** Binaries that may deviate on purpose (src/confine/deviations.h). Never shipped. */
const DEVIATING = ["-DFLOWCELL_TEST_BUILD"];

export const targets = [
  { name: "prelude", kind: "step", module: "./prelude.mjs", entry: "buildPrelude" },
  { name: "engine", kind: "step", module: "./engine.mjs", entry: "buildEngine", dependsOn: ["prelude"] },
  {
    name: "engine-test-image",
    kind: "step",
    module: "./engine.mjs",
    entry: "buildEngineTest",
    test: true,
  },
  {
    name: "engine-driver",
    kind: "hosted-exe",
    folder: "test",
    test: true,
    plainOnly: true,
    sources: ["src/engine", "src/engine/testing/driver.c"],
    libraries: ["-lm"],
    dependsOn: ["engine-test-image"],
    os: ["linux"],
  },
  {
    // The worker's own objects, for the test that takes their writable symbols.
    name: "worker-objects",
    kind: "object-set",
    flavour: "freestanding",
    test: true,
    sources: ["src/base", "src/confine", "src/wire", "src/engine", "src/worker"],
    fileFlags: BASE_FILE_FLAGS,
    dependsOn: ["engine", "build-info"],
    os: ["linux"],
  },
  {
    name: "build-info",
    kind: "step",
    module: "./build-info.mjs",
    entry: "writeBuildInfo",
    dependsOn: ["prelude"],
  },
  { name: "launcher", kind: "shared-lib", sources: ["src/launch"], os: ["linux"] },
  {
    name: "launch-fixture",
    kind: "hosted-exe",
    folder: "test",
    test: true,
    sources: ["src/launch/fixtures/launch_fixture.c"],
    os: ["linux"],
  },
  {
    name: "launch-test",
    kind: "hosted-exe",
    folder: "test",
    test: true,
    sources: ["src/launch", "src/launch/launch_test.c"],
    libraries: ["-lpthread"],
    dependsOn: ["launch-fixture"],
    os: ["linux"],
  },
  {
    name: "files-test",
    kind: "hosted-exe",
    folder: "test",
    test: true,
    sources: ["src/launch/files_linux.c", "src/launch/files_test.c"],
    os: ["linux"],
  },
  {
    name: "wire-test",
    kind: "hosted-exe",
    folder: "test",
    test: true,
    sources: ["src/wire", "src/base/text.c", "src/wire/frame_test.c"],
  },
  {
    name: "wire-fuzz-test",
    kind: "hosted-exe",
    folder: "test",
    test: true,
    sources: ["src/wire/frame.c", "src/wire/frame_fuzz_test.c"],
  },
  {
    name: "bridge-fuzz-test",
    kind: "hosted-exe",
    folder: "test",
    test: true,
    sources: [
      "src/wire/frame.c",
      "src/base/text.c",
      "src/worker/activation.c",
      "src/worker/bridge.c",
      "src/worker/loop.c",
      "src/worker/bridge_fuzz_test.c",
    ],
    // Its own kernel and engine are found before the real ones.
    flags: ["-iquote", "worker-native/src/worker/testing"],
  },
  {
    name: "worker",
    kind: "freestanding-exe",
    sources: ["src/base", "src/confine", "src/wire", "src/engine", "src/worker"],
    fileFlags: BASE_FILE_FLAGS,
    dependsOn: ["engine", "build-info"],
    os: ["linux"],
  },
  {
    name: "worker-json",
    kind: "step",
    module: "./build-info.mjs",
    entry: "writeWorkerJson",
    dependsOn: ["worker", "filter-dump"],
    os: ["linux"],
  },
  {
    name: "probe",
    kind: "freestanding-exe",
    sources: ["src/base", "src/confine", "src/wire/welcome.c", "src/probe"],
    fileFlags: BASE_FILE_FLAGS,
    os: ["linux"],
  },
  {
    name: "worker-deviating",
    kind: "freestanding-exe",
    folder: "test",
    test: true,
    sources: ["src/base", "src/confine", "src/wire", "src/engine", "src/worker"],
    flags: DEVIATING,
    fileFlags: BASE_FILE_FLAGS,
    dependsOn: ["engine", "build-info"],
    os: ["linux"],
  },
  {
    name: "probe-deviating",
    kind: "freestanding-exe",
    folder: "test",
    test: true,
    sources: ["src/base", "src/confine", "src/wire/welcome.c", "src/probe"],
    flags: DEVIATING,
    fileFlags: BASE_FILE_FLAGS,
    os: ["linux"],
  },
  {
    name: "base-test",
    kind: "hosted-exe",
    folder: "test",
    test: true,
    sources: ["src/base/text.c", "src/base/base_test.c"],
    fileFlags: { "src/base/base_test.c": ["-fno-builtin"] },
    libraries: ["-lm"],
  },
  {
    name: "confine-test",
    kind: "hosted-exe",
    folder: "test",
    test: true,
    sources: [
      "src/confine/bpf.c",
      "src/confine/sha256.c",
      "src/confine/landlock.c",
      "src/confine/proc_text.c",
      "src/confine/confine_test.c",
    ],
  },
  {
    name: "filter-dump",
    kind: "hosted-exe",
    sources: ["src/confine/bpf.c", "src/confine/sha256.c", "tools/filter_dump.c"],
  },
  {
    name: "run-piped",
    kind: "hosted-exe",
    folder: "test",
    test: true,
    sources: ["tools/run_piped.c"],
    os: ["linux"],
  },
  {
    name: "tracer",
    kind: "hosted-exe",
    folder: "test",
    test: true,
    sources: ["tools/tracer.c"],
    os: ["linux"],
  },
];
