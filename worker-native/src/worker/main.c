/*
 * The worker: checks how it was started, maps the engine, confines itself, proves it with Welcome, then serves.
 *
 * Called by: the kernel through base/start_linux.c. Nothing is read from standard input before confine_enter has
 * returned. Every failure on the way is an exit code of profiles/exit-codes.json and nothing is written.
 */
#include "base/sys.h"
#include "base/text.h"
#include "build_info.h"
#include "confine/confine.h"
#include "confine/deviations.h"
#include "engine/engine.h"
#include "exit_codes.h"
#include "protocol.h"
#include "wire/welcome.h"
#include "worker/loop.h"
#include "worker/output.h"

int worker_main(int argc, char **argv, char **envp, const unsigned long *auxv);

static void worker_send_welcome(const struct welcome *welcome) {
  char header[MESSAGE_WELCOME_BYTES_MAX];
  struct text text = text_over(header, sizeof header);
  welcome_write(&text, welcome);
  if (text.overflow) sys_exit_group(EXIT_WELCOME);
  output_frame(MESSAGE_WELCOME, 0, 0, (uint32_t)text.length, (uint32_t)text.length);
  output_bytes((const uint8_t *)header, (uint32_t)text.length);
  output_flush();
}

/* The whole command line: nothing, or the operator's word on Landlock. A test build also takes deviations. */
static bool worker_landlock_optional(char **words) {
  bool optional = false;
  for (; *words != NULL; words++) {
    if (!optional && text_equal(*words, "--danger-landlock-optional")) {
      optional = true;
#if defined(FLOWCELL_TEST_BUILD)
    } else if (deviation_argument(*words)) {
#endif
    } else {
      sys_exit_group(EXIT_USAGE);
    }
  }
  return optional;
}

int worker_main(int argc, char **argv, char **envp, const unsigned long *auxv) {
  static struct welcome welcome; /* Reset: written once, before confinement ends; constant afterwards. */
  if (argc < 1) sys_exit_group(EXIT_USAGE);
  bool landlock_optional = worker_landlock_optional(argv + 1);
  startup_check(envp, auxv, &welcome);
  if (engine_map() != 0) sys_exit_group(EXIT_ENGINE_MAP);
  confine_enter(&welcome, landlock_optional);
  welcome.build_id = FLOWCELL_BUILD_ID;
  welcome.fingerprint = FLOWCELL_FINGERPRINT;
  worker_send_welcome(&welcome);
  /* Meanwhile the parent looks at this process, and a spare is not waited for. */
  engine_touch();
  worker_loop();
}
