/*
 * The probe's command line (probe.h has the idea, table_linux.c the acts).
 *
 *     probe --list
 *         One JSON object a line for every act: name, proves, control, landlock, confined.
 *     probe --facts|--spin [OPTIONS]
 *         Confines itself, prints the facts that a worker would attest as its Welcome header (both identities zero),
 *         and waits for the end of its input, or spins for ever, so that it can be looked at.
 *     probe --control|--landlock|--confined NAME [OPTIONS]
 *         Makes what the act needs, confines itself as asked, prints "ready", makes the one attempt and, if it is
 *         still there, prints the outcome: "ok", an error name, or "executed" by the program that an exec probe started.
 *         "unavailable <error>" and exit 3: the act needs something that this system does not have; exit 64: usage;
 *         other exits: profiles/exit-codes.json.
 *     Options: --scratch=FOLDER, for acts on files and sockets; must be writable for user 65534 if root runs it.
 *         --danger-landlock-optional, as a worker takes it: where the kernel has no Landlock, confine without.
 * In all three ways root becomes user 65534 first, so that they differ in confinement only.
 */
#include "../../generated/exit_codes.h"
#include "../base/mem.h"
#include "../base/sys.h"
#include "../base/text.h"
#include "../confine/confine.h"
#include "../confine/deviations.h"
#include "../confine/steps_linux.h"
#include "../wire/welcome.h"
#include "probe.h"

int worker_main(int argc, char **argv, char **envp, const unsigned long *auxv);

enum { PR_SET_DUMPABLE = 4, LINE_BYTES = 512 };

struct request {
  enum probe_mode mode;
  bool landlock_optional;
  const struct probe_row *row;
};

static void say(const char *line) { (void)sys_write(1, line, strlen(line)); }

static void json_field(struct text *out, const char *name, const char *value) {
  text_string(out, out->length == 0 ? "{\"" : ",\"");
  text_string(out, name);
  text_string(out, "\":\"");
  text_string(out, value);
  text_string(out, "\"");
}

static int list(void) {
  for (size_t i = 0; i < PROBE_ROW_COUNT; i++) {
    char line[LINE_BYTES];
    struct text out = text_over(line, sizeof line);
    json_field(&out, "name", PROBE_ROWS[i].name);
    json_field(&out, "proves", PROBE_ROWS[i].proves);
    json_field(&out, "control", PROBE_ROWS[i].control);
    json_field(&out, "landlock", PROBE_ROWS[i].landlock);
    json_field(&out, "confined", PROBE_ROWS[i].confined);
    text_string(&out, "}\n");
    if (out.overflow) return EXIT_USAGE;
    size_t written = 0;
    while (written < out.length) {
      const long result = sys_write(1, line + written, out.length - written);
      if (result <= 0) return EXIT_OUTPUT_FAILED;
      written += (size_t)result;
    }
  }
  return 0;
}

static const struct probe_row *find(const char *name) {
  for (size_t i = 0; i < PROBE_ROW_COUNT; i++) {
    if (text_equal(PROBE_ROWS[i].name, name)) return &PROBE_ROWS[i];
  }
  return NULL;
}

static bool parse_options(char **words, struct request *request) {
  for (; *words != NULL; words++) {
    const char *folder = text_after(*words, "--scratch=");
    if (folder != NULL) {
      probe_scratch_folder(folder);
    } else if (text_equal(*words, "--danger-landlock-optional")) {
      request->landlock_optional = true;
#if defined(FLOWCELL_TEST_BUILD)
    } else if (deviation_argument(*words)) {
#endif
    } else {
      return false;
    }
  }
  return true;
}

static bool parse(int argc, char **argv, struct request *request) {
  if (argc < 3) return false;
  if (text_equal(argv[1], "--control")) {
    request->mode = MODE_CONTROL;
  } else if (text_equal(argv[1], "--landlock")) {
    request->mode = MODE_LANDLOCK;
  } else if (text_equal(argv[1], "--confined")) {
    request->mode = MODE_CONFINED;
  } else {
    return false;
  }
  request->row = find(argv[2]);
  return request->row != NULL && parse_options(argv + 3, request);
}

/* Like confine_enter as far as the mode goes; dumpable, or /proc/self would be closed for a reason of its own. */
static void confine(const struct request *request, struct welcome *facts) {
  if (request->mode == MODE_CONFINED) {
    confine_enter(facts, request->landlock_optional);
    return;
  }
  step_drop_identity();
  step_parent_death();
  if (request->mode == MODE_LANDLOCK) {
    step_no_new_privs();
    step_landlock(facts, false);
  }
  (void)sys_prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static long value_of(const struct probe_arg *arg) {
  switch (arg->kind) {
    case ARG_NUMBER:
      return arg->number;
    case ARG_POINTER:
      return sys_pointer(arg->pointer);
    case ARG_RESOURCE:
      return probe_resource(arg->resource);
  }
  return 0;
}

static void report(long result) {
  char line[64];
  struct text out = text_over(line, sizeof line);
  const char *name = result < 0 && result > -4096 ? probe_errno_name(-result) : NULL;
  if (result >= 0 || result <= -4096) {
    text_string(&out, "ok");
  } else if (name != NULL) {
    text_string(&out, name);
  } else {
    text_string(&out, "errno ");
    text_signed(&out, -result);
  }
  text_string(&out, "\n");
  (void)sys_write(1, line, out.length);
}

static int show_facts(char **argv, char **envp, const unsigned long *auxv) {
  const bool spin = text_equal(argv[1], "--spin");
  struct request request = {MODE_CONFINED, false, NULL};
  if (!parse_options(argv + 2, &request)) return EXIT_USAGE;
  static struct welcome facts;
  startup_check(envp, auxv, &facts);
  confine(&request, &facts);
  static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
  facts.build_id = facts.fingerprint = zeros;
  static char line[MESSAGE_WELCOME_BYTES_MAX + 1];
  struct text out = text_over(line, sizeof line);
  welcome_write(&out, &facts);
  text_string(&out, "\n");
  if (out.overflow) return EXIT_WELCOME;
  if (sys_write(1, line, out.length) != (long)out.length) return EXIT_OUTPUT_FAILED;
  while (spin) __asm__ volatile("");
  while (sys_read(0, probe_buffer, sizeof probe_buffer) > 0) {
  }
  return 0;
}

int worker_main(int argc, char **argv, char **envp, const unsigned long *auxv) {
  if (argc == 2 && text_equal(argv[1], "--list")) return list();
  if (argc >= 2 && (text_equal(argv[1], "--facts") || text_equal(argv[1], "--spin"))) {
    return show_facts(argv, envp, auxv);
  }
  if (argc == 2 && text_equal(argv[1], "--executed")) {
    say("executed\n");
    return 0;
  }
  struct request request = {MODE_CONTROL, false, NULL};
  if (!parse(argc, argv, &request)) return EXIT_USAGE;

  static struct welcome facts;
  startup_check(envp, auxv, &facts);
  const struct probe_row *row = request.row;
  long values[6];
  for (size_t i = 0; i < 6; i++) values[i] = value_of(&row->args[i]);
  /* An act of its own asks for its resource by itself; made now, because later it could not be. */
  if (row->act == act_grow_memory) (void)probe_resource(MEMORY_RESERVED);
  memset(probe_buffer, 0, sizeof probe_buffer);

  confine(&request, &facts);
  say("ready\n");
  long result;
  if (row->act != NULL) {
    result = row->act();
  } else {
    result = sys_call(row->number, values[0], values[1], values[2], values[3], values[4], values[5]);
    if (result == 0 && row->forks) sys_exit_group(0);
  }
  report(result);
  return 0;
}
