/*
 * Runs a worker under ptrace and writes down every system call that it makes after its filter is on.
 *
 *     tracer OUT PROGRAM [ARGUMENTS]
 *
 * Called by the confinement tests: it shows which rows of the filter a worker really needs, and which not. The program
 * gets three anonymous pipes, as a worker must; bytes pass through between them and the tracer's own standard
 * descriptors, so the caller can hold a conversation. The worker must be a test build with --test-deviation=traced, because a
 * shipped one refuses to be traced. OUT receives JSON lines: one for each distinct call {"number", "name", "args":
 * [six hexadecimal texts], "count"}, then one {"exit", "signal", "filtered", "killedBy"}: `filtered` tells whether the
 * filter was ever installed, `killedBy` names the call that was entered last if SIGSYS ended the worker.
 * Exit: 0 when the trace is complete, 70 when tracing failed; what became of the worker is in OUT.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/ptrace.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"

/* <sys/ptrace.h> and <linux/ptrace.h> cannot be included together; these are the kernel's numbers. */
enum {
  TRACE_ME = 0,
  TRACE_SYSCALL = 24,
  TRACE_SET_OPTIONS = 0x4200,
  OPTION_MARK_SYSCALLS = 1,
  OPTION_EXIT_KILL = 0x100000
};

enum { CALLS_MAX = 1 << 16, INTERNAL_FAILURE = 70 };

struct call {
  uint64_t number;
  uint64_t args[6];
  uint64_t count; /* 0: the slot is free */
};

static struct call calls[CALLS_MAX];
static size_t distinct;

_Noreturn static void fail(const char *what) {
  fprintf(stderr, "flowcell tracer: %s: %s\n", what, strerror(errno));
  exit(INTERNAL_FAILURE);
}

static long trace(long request, pid_t pid, void *address, void *data) {
  return syscall(SYS_ptrace, request, pid, address, data);
}

static const char *name_of(uint64_t number) {
#define CALL_NAME(name, value) {value, #name},
  static const struct {
    uint64_t number;
    const char *name;
  } names[] = {SYSNO_TABLE(CALL_NAME)};
#undef CALL_NAME
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (names[i].number == number) return names[i].name;
  }
  return "unknown";
}

static void record(uint64_t number, const uint64_t args[6]) {
  uint64_t hash = number * 0x9e3779b97f4a7c15u;
  for (size_t i = 0; i < 6; i++) hash = (hash ^ args[i]) * 0x9e3779b97f4a7c15u;
  for (size_t slot = hash >> 48;; slot = (slot + 1) % CALLS_MAX) {
    struct call *call = &calls[slot];
    if (call->count == 0) {
      /* A full table would loop for ever and a dropped call would be a lie. */
      if (++distinct == CALLS_MAX) {
        errno = E2BIG;
        fail("too many distinct calls");
      }
      call->number = number;
      memcpy(call->args, args, sizeof call->args);
    } else if (call->number != number || memcmp(call->args, args, sizeof call->args) != 0) {
      continue;
    }
    call->count++;
    return;
  }
}

/* Copies until either side ends. A process of its own, so that the tracer can wait for the worker alone. */
static pid_t relay(int from, int to, const int pipes[3][2]) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  for (int i = 0; i < 3; i++) {
    for (int end = 0; end < 2; end++) {
      if (pipes[i][end] != from && pipes[i][end] != to) close(pipes[i][end]);
    }
  }
  static char buffer[65536];
  ssize_t got;
  while ((got = read(from, buffer, sizeof buffer)) > 0) {
    for (ssize_t done = 0; done < got;) {
      const ssize_t put = write(to, buffer + done, (size_t)(got - done));
      if (put <= 0) _exit(0);
      done += put;
    }
  }
  _exit(0);
}

static pid_t start(char **program, const int pipes[3][2]) {
  const pid_t pid = fork();
  if (pid < 0) fail("fork");
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  dup2(pipes[0][0], 0);
  dup2(pipes[1][1], 1);
  dup2(pipes[2][1], 2);
  syscall(NR_close_range, 3, ~0u, 0);
  char *const environment[] = {NULL};
  if (trace(TRACE_ME, 0, NULL, NULL) == 0) execve(program[0], program, environment);
  _exit(127);
}

struct outcome {
  int status;
  bool filtered;
  uint64_t last;
};

/* One stop at a system call. True from the return of a successful filter installation on. */
static bool look(pid_t pid, struct outcome *outcome, bool *installing) {
  struct ptrace_syscall_info info;
  memset(&info, 0, sizeof info);
  if (trace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof info, &info) < 0) fail("PTRACE_GET_SYSCALL_INFO");
  if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
    outcome->last = info.entry.nr;
    if (outcome->filtered) record(info.entry.nr, (const uint64_t *)info.entry.args);
    *installing = info.entry.nr == NR_seccomp && info.entry.args[0] == SECCOMP_SET_MODE_FILTER;
  } else if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
    if (*installing && info.exit.rval == 0) outcome->filtered = true;
    *installing = false;
  }
  return outcome->filtered;
}

static struct outcome follow(pid_t pid) {
  struct outcome outcome = {0, false, 0};
  bool installing = false, started = false;
  for (;;) {
    if (waitpid(pid, &outcome.status, 0) != pid) fail("waitpid");
    if (!WIFSTOPPED(outcome.status)) return outcome;
    const int stop = WSTOPSIG(outcome.status);
    long deliver = 0;
    if (!started) {
      /* The stop after exec. */
      if (trace(TRACE_SET_OPTIONS, pid, NULL, (void *)(OPTION_MARK_SYSCALLS | OPTION_EXIT_KILL)) < 0) fail("options");
      started = true;
    } else if (stop == (SIGTRAP | 0x80)) {
      look(pid, &outcome, &installing);
    } else {
      deliver = stop;
    }
    if (trace(TRACE_SYSCALL, pid, NULL, (void *)deliver) < 0 && errno != ESRCH) fail("PTRACE_SYSCALL");
  }
}

static void print(FILE *out, const struct outcome *outcome) {
  for (size_t i = 0; i < CALLS_MAX; i++) {
    if (calls[i].count == 0) continue;
    fprintf(out, "{\"number\":%" PRIu64 ",\"name\":\"%s\",\"args\":[", calls[i].number, name_of(calls[i].number));
    for (size_t a = 0; a < 6; a++) fprintf(out, "%s\"0x%" PRIx64 "\"", a == 0 ? "" : ",", calls[i].args[a]);
    fprintf(out, "],\"count\":%" PRIu64 "}\n", calls[i].count);
  }
  const int status = outcome->status;
  const int signal_number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  fprintf(out, "{\"exit\":%d,\"signal\":%d,\"filtered\":%s,\"killedBy\":", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          signal_number, outcome->filtered ? "true" : "false");
  if (signal_number == SIGSYS) {
    fprintf(out, "\"%s\"}\n", name_of(outcome->last));
  } else {
    fputs("null}\n", out);
  }
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fputs("flowcell tracer: usage: tracer OUT PROGRAM [ARGUMENTS]\n", stderr);
    return 64;
  }
  FILE *out = fopen(argv[1], "we");
  if (out == NULL) fail(argv[1]);
  int pipes[3][2];
  for (int i = 0; i < 3; i++) {
    if (pipe2(pipes[i], O_CLOEXEC) != 0) fail("pipe2");
  }
  const pid_t worker = start(argv + 2, pipes);
  const pid_t relays[3] = {relay(0, pipes[0][1], pipes), relay(pipes[1][0], 1, pipes), relay(pipes[2][0], 2, pipes)};
  for (int i = 0; i < 3; i++) {
    close(pipes[i][0]);
    close(pipes[i][1]);
  }
  /* Only the relay holds the caller's end of the input, so that its end reaches the worker. */
  close(0);
  const struct outcome outcome = follow(worker);
  /* What the worker wrote before it died is still on its way. */
  waitpid(relays[1], NULL, 0);
  waitpid(relays[2], NULL, 0);
  kill(relays[0], SIGKILL);
  waitpid(relays[0], NULL, 0);
  print(out, &outcome);
  return fclose(out) == 0 ? 0 : INTERNAL_FAILURE;
}
