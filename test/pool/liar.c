/*
 * A worker for tests that speaks the real wire and misbehaves on request. It is not confined and holds no engine.
 *
 * Started by the tests of test/pool through the real launcher. How it behaves before it runs a script is chosen by the
 * last part of its path (the tests link the one binary under many names); what it does as a "script" is a list of
 * commands, one a line, in the place of JavaScript. So one pool can run a well-behaved activation after a hostile
 * one, which is what the tests want to know.
 *
 * Names: honest; silent; late-MS; early; eager; truncated; stalled; oversize; garbage; twice; exit-CODE; signal-NUMBER;
 * deaf (never reads); burn (idle, uses CPU); talk (idle, sends); fact-NAME=JSON (one fact replaced); lack-NAME (one
 * fact left out).
 * Commands: see `run_command`.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { HEADER = 12, TEXT_MAX = 1 << 16, FACTS = 31 };
enum { WELCOME = 1, HOST_CALL = 2, CANCEL_CALL = 3, CONSOLE = 4, BLOCKED = 5, FINISHED = 6, REFUSED = 7 };
enum { ACTIVATE = 16, DELIVER = 17 };

struct frame {
  uint8_t type;
  uint8_t flags;
  uint16_t attachments;
  uint32_t text_length;
  uint32_t rest_length;
  uint8_t *rest;
};

static struct frame input;   /* the Activate of this activation */
static struct frame outcome; /* the last Deliver */

static void die(const char *what) {
  dprintf(2, "liar: %s\n", what);
  _exit(120);
}

static void put32(uint8_t *at, uint32_t value) { memcpy(at, &value, 4); }

static uint32_t get32(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, 4);
  return value;
}

static bool gathering;
static uint8_t gathered[2 * TEXT_MAX];
static size_t gathered_length;

static void write_all(const void *bytes, size_t length) {
  const uint8_t *at = bytes;
  if (gathering) {
    if (length > sizeof gathered - gathered_length) die("too much to gather");
    memcpy(gathered + gathered_length, bytes, length);
    gathered_length += length;
    return;
  }
  while (length > 0) {
    ssize_t sent = write(1, at, length);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) _exit(121);
    at += sent;
    length -= (size_t)sent;
  }
}

/* What is written meanwhile leaves in one write, so that the parent reads it at once. */
static void gather(bool on) {
  gathering = on;
  if (!on) write_all(gathered, gathered_length);
}

static void read_all(void *bytes, size_t length, bool at_boundary) {
  uint8_t *at = bytes;
  while (length > 0) {
    ssize_t got = read(0, at, length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) _exit(122);
    if (got == 0) _exit(at_boundary ? 0 : 123);
    at_boundary = false;
    at += got;
    length -= (size_t)got;
  }
}

static void pause_ms(long ms) {
  struct timespec left = {ms / 1000, (ms % 1000) * 1000000L};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
}

static void burn_ms(long ms) {
  struct timespec now;
  volatile uint64_t sink = 0;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  int64_t end = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + ms;
  do {
    for (int i = 0; i < 1000; i++) sink += (uint64_t)i;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  } while (ms < 0 || (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 < end);
}

/* A frame of a text and of whole attachments that are encoded already, in one write. */
static void send_frame(uint8_t type, uint8_t flags, const char *text, size_t text_length, const uint8_t *rest,
                       size_t rest_length, uint16_t attachments) {
  uint8_t *bytes = malloc(HEADER + text_length + rest_length);
  if (bytes == NULL) die("no memory");
  put32(bytes, (uint32_t)(HEADER - 4 + text_length + rest_length));
  bytes[4] = type;
  bytes[5] = flags;
  memcpy(bytes + 6, &attachments, 2);
  put32(bytes + 8, (uint32_t)text_length);
  if (text_length > 0) memcpy(bytes + HEADER, text, text_length);
  if (rest_length > 0) memcpy(bytes + HEADER + text_length, rest, rest_length);
  write_all(bytes, HEADER + text_length + rest_length);
  free(bytes);
}

__attribute__((format(printf, 2, 3))) static void send_text(uint8_t type, const char *format, ...) {
  static char text[TEXT_MAX];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  send_frame(type, 0, text, (size_t)length, NULL, 0, 0);
}

/* Finished or Refused: text, the attachments of a value, and the usage report as the last one. */
static void send_end(uint8_t type, uint8_t flags, const char *text, size_t length, const uint8_t *rest, size_t rest_length,
                     uint16_t attachments) {
  uint8_t *all = calloc(1, rest_length + 28);
  if (all == NULL) die("no memory");
  if (rest_length > 0) memcpy(all, rest, rest_length);
  put32(all + rest_length, 24);
  put32(all + rest_length + 4, 1000);         /* CPU microseconds: a lie, the parent measures for itself */
  put32(all + rest_length + 12, 6u << 20);    /* heap peak */
  put32(all + rest_length + 16, 5u << 20);    /* heap now */
  send_frame(type, flags, text, length, all, rest_length + 28, (uint16_t)(attachments + 1));
  free(all);
}

static void read_frame(struct frame *frame, bool idle) {
  uint8_t head[HEADER];
  read_all(head, HEADER, idle);
  free(frame->rest);
  frame->type = head[4];
  frame->flags = head[5];
  memcpy(&frame->attachments, head + 6, 2);
  frame->text_length = get32(head + 8);
  frame->rest_length = get32(head) - (HEADER - 4);
  frame->rest = malloc((size_t)frame->rest_length + 1);
  if (frame->rest == NULL) die("no memory");
  read_all(frame->rest, frame->rest_length, false);
}

/* The value's text: what follows the header's line. */
static const char *value_of(const struct frame *frame, size_t *length) {
  const uint8_t *line = memchr(frame->rest, '\n', frame->text_length);
  if (line == NULL) {
    *length = 4;
    return "null";
  }
  *length = frame->text_length - (size_t)(line + 1 - frame->rest);
  return (const char *)line + 1;
}

/* Where the attachments that follow the first `skip` begin. */
static const uint8_t *attachments_after(const struct frame *frame, unsigned skip, size_t *length) {
  size_t at = frame->text_length;
  for (unsigned i = 0; i < skip; i++) at += 4 + (size_t)get32(frame->rest + at);
  *length = frame->rest_length - at;
  return frame->rest + at;
}

static void finish_with_value(const struct frame *frame, unsigned skip) {
  static const char header[] = "{\"status\":\"completed\",\"warnings\":[],\"hostCalls\":0}\n";
  size_t value_length;
  size_t rest_length;
  const char *value = value_of(frame, &value_length);
  const uint8_t *rest = attachments_after(frame, skip, &rest_length);
  size_t length = sizeof header - 1 + value_length;
  char *text = malloc(length);
  if (text == NULL) die("no memory");
  memcpy(text, header, sizeof header - 1);
  memcpy(text + sizeof header - 1, value, value_length);
  send_end(FINISHED, frame->flags, text, length, rest, rest_length, (uint16_t)(frame->attachments - skip));
  free(text);
}

static void finish_with_text(const char *value) {
  char text[TEXT_MAX];
  int length = snprintf(text, sizeof text, "{\"status\":\"completed\",\"warnings\":[],\"hostCalls\":0}\n%s", value);
  send_end(FINISHED, 0, text, (size_t)length, NULL, 0, 0);
}

static void host_call(unsigned position, const char *name, const char *value) {
  send_text(HOST_CALL, "{\"position\":%u,\"name\":\"%s\"}\n%s", position, name, value);
}

static void flood(const char *what) {
  for (unsigned n = 0;; n++) {
    if (strcmp(what, "console") == 0) {
      send_text(CONSOLE, "{\"seq\":%u,\"level\":\"log\",\"timeMs\":0,\"text\":\"%01000u\"}", n, n);
    } else if (strcmp(what, "empty") == 0) {
      send_text(CONSOLE, "{\"seq\":%u,\"level\":\"log\",\"timeMs\":0,\"text\":\"\"}", n);
    } else if (strcmp(what, "calls") == 0) {
      host_call(n, "never", "[]");
    } else if (strcmp(what, "cancels") == 0) {
      host_call(n, "never", "[]");
      send_text(CANCEL_CALL, "{\"position\":%u}", n);
    } else {
      send_text(BLOCKED, "{\"nextTimerAt\":null,\"openCalls\":0,\"delivered\":0}");
    }
  }
}

/* `calls COUNT NAME`: host calls one after the other, each awaited. */
static void sequential_calls(unsigned count, const char *name) {
  for (unsigned n = 0; n < count; n++) {
    host_call(n, name, "[1]");
    read_frame(&outcome, false);
  }
}

static void raw_hex(const char *hex) {
  unsigned byte;
  for (; sscanf(hex, "%2x", &byte) == 1; hex += 2) {
    uint8_t one = (uint8_t)byte;
    write_all(&one, 1);
  }
}

/* `frame TYPE FLAGS TEXT`: any frame without attachments; `end TYPE FLAGS TEXT`: with a usage report. */
static void any_frame(const char *arguments, bool end) {
  unsigned type;
  unsigned flags;
  int used = 0;
  if (sscanf(arguments, "%u %u %n", &type, &flags, &used) < 2) die("frame wants TYPE FLAGS TEXT");
  char text[TEXT_MAX];
  size_t length = 0;
  /* "\n" in the command is the line feed between header and value. */
  for (const char *from = arguments + used; *from != 0 && length < sizeof text; from++) {
    if (from[0] == '\\' && from[1] == 'n') {
      text[length++] = '\n';
      from++;
    } else {
      text[length++] = *from;
    }
  }
  if (end) send_end((uint8_t)type, (uint8_t)flags, text, length, NULL, 0, 0);
  else send_frame((uint8_t)type, (uint8_t)flags, text, length, NULL, 0, 0);
}

static void end_by_signal(int number) {
  signal(number, SIG_DFL);
  raise(number);
  die("the signal did not end the process");
}

static void occupy(size_t bytes) {
  volatile uint8_t *memory = malloc(bytes);
  if (memory == NULL) die("no memory");
  for (size_t i = 0; i < bytes; i += 4096) memory[i] = 1;
}

/* Takes getppid away from itself, as a worker's filter takes all but a few calls away, and makes it. */
static void refused_call(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) die("no_new_privs");
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) die("filter");
  syscall(SYS_getppid);
}

/* One command; false when the activation has ended. */
static bool run_command(const char *command) {
  char word[32];
  int used = 0;
  if (sscanf(command, "%31s %n", word, &used) < 1) return true;
  const char *rest = command + used;
  unsigned number = 0;
  char name[64] = "";
  int more = 0;

  if (strcmp(word, "echo") == 0) return finish_with_value(&input, 2), false;
  if (strcmp(word, "return") == 0) return finish_with_text(rest), false;
  if (strcmp(word, "delivered") == 0) return finish_with_value(&outcome, 0), false;
  if (strcmp(word, "delivery") == 0) {
    /* The header of the last Deliver, which is JSON, as the result. */
    outcome.rest[outcome.text_length] = 0;
    char *line = strchr((char *)outcome.rest, '\n');
    if (line != NULL) *line = 0;
    return finish_with_text((const char *)outcome.rest), false;
  }
  if (strcmp(word, "end") == 0) return any_frame(rest, true), false;
  if (strcmp(word, "ends") == 0) any_frame(rest, true); /* and go on */
  else if (strcmp(word, "frame") == 0) any_frame(rest, false);
  else if (strcmp(word, "raw") == 0) raw_hex(rest);
  else if (strcmp(word, "hostcall") == 0) {
    if (sscanf(rest, "%u %63s %n", &number, name, &more) < 2) die("hostcall wants POSITION NAME ARRAY");
    host_call(number, name, rest + more);
  } else if (strcmp(word, "calls") == 0) {
    if (sscanf(rest, "%u %63s", &number, name) < 2) die("calls wants COUNT NAME");
    sequential_calls(number, name);
  } else if (strcmp(word, "cancel") == 0) send_text(CANCEL_CALL, "{\"position\":%s}", rest);
  else if (strcmp(word, "await") == 0) read_frame(&outcome, false);
  else if (strcmp(word, "log") == 0) send_text(CONSOLE, "{\"seq\":0,\"level\":\"log\",\"timeMs\":0,\"text\":\"%s\"}", rest);
  else if (strcmp(word, "blocked") == 0) {
    unsigned delivered = 0;
    if (sscanf(rest, "%63s %u %u", name, &number, &delivered) < 2) die("blocked wants TIME|null OPEN [DELIVERED]");
    send_text(BLOCKED, "{\"nextTimerAt\":%s,\"openCalls\":%u,\"delivered\":%u}", name, number, delivered);
  } else if (strcmp(word, "flood") == 0) flood(rest);
  else if (strcmp(word, "occupy") == 0) occupy((size_t)atol(rest) << 20);
  else if (strcmp(word, "spin") == 0) burn_ms(*rest == 0 ? -1 : atol(rest));
  else if (strcmp(word, "pause") == 0) pause_ms(*rest == 0 ? 1000000 : atol(rest));
  else if (strcmp(word, "exit") == 0) _exit(atoi(rest));
  else if (strcmp(word, "refused") == 0) refused_call();
  else if (strcmp(word, "signal") == 0) end_by_signal(atoi(rest));
  else if (strcmp(word, "closeout") == 0) close(1);
  else if (strcmp(word, "closein") == 0) close(0);
  else die(command);
  return true;
}

/* The commands of one script; those after the end of the activation are what an idle worker does. */
static void run_script(void) {
  size_t ignored;
  const uint8_t *at = attachments_after(&input, 1, &ignored);
  uint32_t length = get32(at);
  char *script = strndup((const char *)at + 4, length);
  if (script == NULL) die("no memory");
  char *next = script;
  for (char *line; (line = strsep(&next, "\n")) != NULL;) run_command(line);
  free(script);
}

struct fact {
  const char *name;
  char value[80];
};

static unsigned facts(struct fact *at) {
  static const char hash[] = "\"%064d\"";
  struct rlimit limit;
  unsigned count = 0;
#define FACT(field, ...) (at[count].name = field, snprintf(at[count].value, sizeof at->value, __VA_ARGS__), count++)
  FACT("protocol", "1");
  FACT("buildId", hash, 1);
  FACT("fingerprint", hash, 2);
  FACT("os", "\"linux\"");
#if defined(__aarch64__)
  FACT("arch", "\"arm64\"");
#else
  FACT("arch", "\"x64\"");
#endif
  FACT("seccompSha256", hash, 3);
  FACT("seccompLength", "100");
  FACT("seccompTsync", "true");
  FACT("landlockAbi", "1");
  FACT("noNewPrivs", "true");
  FACT("dumpable", "false");
  FACT("mdwe", "true");
  FACT("threads", "1");
  FACT("uid", "65534");
  FACT("gid", "65534");
  FACT("groups", "0");
  FACT("capEffective", "\"%016d\"", 0);
  FACT("capPermitted", "\"%016d\"", 0);
  FACT("capInheritable", "\"%016d\"", 0);
  FACT("capAmbient", "\"%016d\"", 0);
  FACT("limitCore", "0");
  getrlimit(RLIMIT_DATA, &limit);
  FACT("limitData", "%llu", (unsigned long long)limit.rlim_cur);
  getrlimit(RLIMIT_CPU, &limit);
  FACT("limitCpu", "%llu", (unsigned long long)limit.rlim_cur);
  getrlimit(RLIMIT_STACK, &limit);
  FACT("limitStack", "%llu", (unsigned long long)limit.rlim_cur);
  FACT("limitNofile", "3");
  FACT("limitFsize", "0");
  FACT("limitNproc", "0");
  FACT("descriptors", "7");
  FACT("environmentCount", "0");
  FACT("specStoreBypass", "0");
  FACT("specIndirectBranch", "0");
#undef FACT
  if (count != FACTS) die("the table of facts has another length");
  return count;
}

/* The header of Welcome, with the fact that the name asks for replaced or left out. */
static size_t welcome_text(const char *behaviour, char *text, size_t size) {
  struct fact table[FACTS];
  unsigned count = facts(table);
  size_t length = 0;
  for (unsigned i = 0; i < count; i++) {
    const char *value = table[i].value;
    size_t name_length = strlen(table[i].name);
    if (strncmp(behaviour, "lack-", 5) == 0 && strcmp(behaviour + 5, table[i].name) == 0) continue;
    if (strncmp(behaviour, "fact-", 5) == 0 && strncmp(behaviour + 5, table[i].name, name_length) == 0 &&
        behaviour[5 + name_length] == '=') {
      value = behaviour + 5 + name_length + 1;
    }
    length += (size_t)snprintf(text + length, size - length, "%s\"%s\":%s", length == 0 ? "{" : ",", table[i].name, value);
  }
  length += (size_t)snprintf(text + length, size - length, "}");
  return length;
}

static void send_welcome(const char *behaviour) {
  char text[8192];
  send_frame(WELCOME, 0, text, welcome_text(behaviour, text, sizeof text), NULL, 0, 0);
}

static bool starts_with(const char *text, const char *start) { return strncmp(text, start, strlen(start)) == 0; }

/* What the name asks for in place of, before or around an honest Welcome. */
static void welcome(const char *behaviour) {
  if (starts_with(behaviour, "exit-")) {
    dprintf(2, "exit on request\n");
    _exit(atoi(behaviour + 5));
  }
  if (starts_with(behaviour, "signal-")) end_by_signal(atoi(behaviour + 7));
  if (strcmp(behaviour, "silent") == 0) pause_ms(1000000);
  if (starts_with(behaviour, "late-")) pause_ms(atol(behaviour + 5));
  if (strcmp(behaviour, "early") == 0) send_text(CONSOLE, "{\"seq\":0,\"level\":\"log\",\"timeMs\":0,\"text\":\"\"}");
  if (strcmp(behaviour, "garbage") == 0) write_all("GET / HTTP/1.1\r\n\r\n", 18);
  if (strcmp(behaviour, "oversize") == 0) write_all("\xff\xff\xff\xff\x01\0\0\0\xff\xff\xff\x7f", HEADER);
  if (strcmp(behaviour, "truncated") == 0 || strcmp(behaviour, "stalled") == 0) {
    write_all("\x40\0\0\0\x01\0\0\0\x38\0\0\0{\"proto", HEADER + 7);
    if (strcmp(behaviour, "truncated") == 0) _exit(0);
    pause_ms(1000000);
  }
  gather(true);
  send_welcome(behaviour);
  if (strcmp(behaviour, "eager") == 0) host_call(0, "echo", "[]");
  if (strcmp(behaviour, "twice") == 0) send_welcome(behaviour);
  gather(false);
  if (strcmp(behaviour, "deaf") == 0) pause_ms(1000000);
  if (strcmp(behaviour, "burn") == 0) burn_ms(-1);
  if (strcmp(behaviour, "talk") == 0) {
    pause_ms(50);
    host_call(0, "echo", "[]");
  }
}

int main(int argc, char **argv) {
  if (argc < 1) return 124;
  const char *slash = strrchr(argv[0], '/');
  /* With the test gone nobody would stop a worker that pauses or burns. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  welcome(slash == NULL ? argv[0] : slash + 1);
  for (;;) {
    read_frame(&input, true);
    if (input.type == DELIVER) continue;
    if (input.type != ACTIVATE) die("expected Activate");
    run_script();
  }
}
