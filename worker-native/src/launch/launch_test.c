/*
 * The launcher in parents that Node never is: standard descriptors closed, under a filter without close_range, with
 * ignored and blocked signals, on a second thread, out of descriptors. Every case runs in a process of its own
 * and launches the fixture that lies beside this program.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/launch.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { REPORT_MAX = 16 * 1024, WAIT_MS = 20000 };

static char fixture[4096];
/* Where failures are printed: descriptor 2 is closed in some cases. */
static FILE *messages;

#define REQUIRE(condition)                                                          \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(messages, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

/* The sanitizers' shadow counts as data; the fixture must be able to start under them. */
static struct launch_limits wide_limits(void) {
  return (struct launch_limits){.data_bytes = 1ULL << 52, .cpu_seconds = 3600, .stack_bytes = 8ULL << 20};
}

static int32_t launch(const char *act, struct launch_result *result) {
  struct launch_limits limits = wide_limits();
  return launch_worker(fixture, &act, 1, &limits, result);
}

static struct launch_exit collect(const struct launch_result *worker) {
  struct pollfd dead = {.fd = worker->pidfd, .events = POLLIN};
  REQUIRE(poll(&dead, 1, WAIT_MS) == 1);
  struct launch_exit ended;
  REQUIRE(launch_reap(worker->pidfd, &ended) == 1);
  return ended;
}

static void read_report(const struct launch_result *worker, char *text) {
  size_t length = 0;
  for (;;) {
    struct pollfd ready = {.fd = worker->stdout_fd, .events = POLLIN};
    REQUIRE(poll(&ready, 1, WAIT_MS) == 1);
    ssize_t got = read(worker->stdout_fd, text + length, REPORT_MAX - 1 - length);
    REQUIRE(got >= 0);
    if (got == 0) break;
    length += (size_t)got;
  }
  text[length] = '\0';
  REQUIRE(collect(worker).code == 0);
}

static bool says(const char *report, const char *part) {
  return strstr(report, part) != NULL;
}

static void require_three_pipes(const char *report) {
  static const char expected[] =
      "{\"descriptors\":[{\"fd\":0,\"pipe\":true,\"access\":0,\"nonBlocking\":false},"
      "{\"fd\":1,\"pipe\":true,\"access\":1,\"nonBlocking\":false},"
      "{\"fd\":2,\"pipe\":true,\"access\":1,\"nonBlocking\":false}],";
  if (strncmp(report, expected, sizeof expected - 1) != 0) fprintf(messages, "%s", report);
  REQUIRE(strncmp(report, expected, sizeof expected - 1) == 0);
}

static void leak_descriptors(int count) {
  for (int made = 0; made < count; made++) REQUIRE(open("/dev/null", O_RDWR) >= 0);
}

static void launches_with_standard_descriptors_closed(void) {
  char report[REPORT_MAX];
  for (unsigned closed = 0; closed < 8; closed++) {
    for (int fd = 0; fd < 3; fd++) {
      if (closed & (1U << fd)) (void)close(fd);
    }
    struct launch_result worker;
    REQUIRE(launch("report", &worker) == 0);
    REQUIRE(worker.stdin_fd > 2 && worker.stdout_fd > 2 && worker.stderr_fd > 2 && worker.pidfd > 2);
    read_report(&worker, report);
    require_three_pipes(report);
    for (int fd = 0; fd < 3; fd++) {
      if (!(closed & (1U << fd))) continue;
      /* The launcher left nothing behind in the numbers that were free. */
      REQUIRE(fcntl(fd, F_GETFD) < 0 && errno == EBADF);
    }
    for (int fd = 0; fd < 3; fd++) {
      if (closed & (1U << fd)) REQUIRE(open("/dev/null", O_RDWR) <= fd);
    }
  }
}

static void install_filter(struct sock_filter *rows, unsigned short length) {
  struct sock_fprog program = {.len = length, .filter = rows};
  REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static volatile sig_atomic_t signal_arrived;

static void note_signal(int number) {
  (void)number;
  signal_arrived = 1;
}

static void refuse_call(unsigned number, unsigned error) {
  struct sock_filter rows[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  install_filter(rows, sizeof rows / sizeof rows[0]);
}

/* Refuses the call when the low half of one argument has this value. */
static void refuse_call_with(unsigned number, unsigned argument, unsigned value, unsigned error) {
  unsigned offset = (unsigned)offsetof(struct seccomp_data, args) + argument * 8;
  struct sock_filter rows[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  install_filter(rows, sizeof rows / sizeof rows[0]);
}

static void passes_on_no_descriptor_without_close_range(void) {
  char report[REPORT_MAX];
  leak_descriptors(300);
  refuse_call(SYS_close_range, ENOSYS);
  struct launch_result worker;
  REQUIRE(launch("report", &worker) == 0);
  read_report(&worker, report);
  require_three_pipes(report);
}

static void passes_on_no_descriptor_with_close_range(void) {
  char report[REPORT_MAX];
  leak_descriptors(300);
  struct launch_result worker;
  REQUIRE(launch("report", &worker) == 0);
  read_report(&worker, report);
  require_three_pipes(report);
}

static void gives_default_signals_and_keeps_its_own(void) {
  char report[REPORT_MAX];
  for (int number = 1; number <= 64; number++) (void)signal(number, SIG_IGN);
  (void)signal(SIGCHLD, SIG_DFL);
  sigset_t all;
  sigset_t after;
  (void)sigfillset(&all);
  REQUIRE(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
  struct launch_result worker;
  REQUIRE(launch("report", &worker) == 0);
  read_report(&worker, report);
  REQUIRE(says(report, "\"SigBlk\":\"0000000000000000\""));
  REQUIRE(says(report, "\"SigIgn\":\"0000000000000000\""));
  REQUIRE(says(report, "\"SigPnd\":\"0000000000000000\""));
  REQUIRE(sigprocmask(SIG_BLOCK, NULL, &after) == 0);
  REQUIRE(sigismember(&after, SIGUSR1) == 1 && sigismember(&after, SIGINT) == 1);
  REQUIRE(sigprocmask(SIG_UNBLOCK, &all, NULL) == 0);
  REQUIRE(launch("report", &worker) == 0);
  read_report(&worker, report);
  REQUIRE(sigprocmask(SIG_BLOCK, NULL, &after) == 0);
  REQUIRE(sigismember(&after, SIGUSR1) == 0);
}

static void gives_default_signals_when_proc_cannot_be_read(void) {
  char report[REPORT_MAX];
  (void)signal(SIGPIPE, SIG_IGN);
  (void)signal(SIGRTMAX, SIG_IGN);
  /* The length by which the launcher's read of /proc/self/status can be told from every other read. */
  refuse_call_with(SYS_read, 2, 4095, EIO);
  struct launch_result worker;
  REQUIRE(launch("report", &worker) == 0);
  read_report(&worker, report);
  REQUIRE(says(report, "\"SigIgn\":\"0000000000000000\""));
}

/* Handled by the parent, deadly to a child that inherits the default action: what Ctrl-C is to many services. */
static void survives_signals_sent_to_the_group_of_its_parent(void) {
  enum { LAUNCHES = 60 };
  static struct launch_result workers[LAUNCHES];
  REQUIRE(setpgid(0, 0) == 0);
  (void)signal(SIGUSR1, note_signal);
  pid_t sender = fork();
  REQUIRE(sender >= 0);
  if (sender == 0) {
    (void)signal(SIGUSR1, SIG_IGN);
    for (;;) (void)kill(0, SIGUSR1);
  }
  while (signal_arrived == 0) (void)usleep(100);
  for (int at = 0; at < LAUNCHES; at++) REQUIRE(launch("idle", &workers[at]) == 0);
  REQUIRE(kill(sender, SIGKILL) == 0 && waitpid(sender, NULL, 0) == sender);
  for (int at = 0; at < LAUNCHES; at++) {
    REQUIRE(close(workers[at].stdin_fd) == 0);
    REQUIRE(collect(&workers[at]).code == 0);
    (void)close(workers[at].stdout_fd);
    (void)close(workers[at].stderr_fd);
    (void)close(workers[at].pidfd);
  }
}

static void *launch_on_thread(void *unused) {
  (void)unused;
  struct launch_result worker;
  REQUIRE(launch("idle", &worker) == LAUNCH_STEP_THREAD);
  return NULL;
}

static void refuses_a_second_thread(void) {
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, launch_on_thread, NULL) == 0);
  REQUIRE(pthread_join(thread, NULL) == 0);
}

static void refuses_a_parent_that_ignores_child_signals(void) {
  struct launch_result worker;
  (void)signal(SIGCHLD, SIG_IGN);
  REQUIRE(launch("idle", &worker) == LAUNCH_STEP_CHILD_SIGNAL);
  struct sigaction action = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT};
  REQUIRE(sigaction(SIGCHLD, &action, NULL) == 0);
  REQUIRE(launch("idle", &worker) == LAUNCH_STEP_CHILD_SIGNAL);
}

static int open_descriptors(void) {
  int count = 0;
  for (int fd = 0; fd < 1024; fd++) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

static void require_failure(const char *path, uint32_t arguments, enum launch_step step, int error) {
  static const char *const words[LAUNCH_ARGUMENTS_MAX + 1] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
  struct launch_limits limits = wide_limits();
  struct launch_result result;
  int before = open_descriptors();
  int32_t failed = launch_worker(path, words, arguments, &limits, &result);
  if (failed != (int32_t)step || result.error != error) {
    fprintf(messages, "%s: %s, error %d\n", path, launch_step_name(failed), result.error);
  }
  REQUIRE(failed == (int32_t)step && result.step == failed && result.error == error);
  REQUIRE(open_descriptors() == before);
  REQUIRE(waitpid(-1, NULL, WNOHANG | __WALL) == -1 && errno == ECHILD);
}

static void write_file(const char *path, const char *text, mode_t mode) {
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  REQUIRE(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && fchmod(fd, mode) == 0 && close(fd) == 0);
}

static void reports_step_and_error_and_leaves_nothing(void) {
  char folder[] = "/tmp/launch-test-XXXXXX";
  REQUIRE(mkdtemp(folder) != NULL && chdir(folder) == 0);
  char path[64];
#define IN_FOLDER(name) (snprintf(path, sizeof path, "%s/%s", folder, name), path)
  require_failure("bin/relative", 0, LAUNCH_STEP_ARGUMENTS, 0);
  require_failure(fixture, LAUNCH_ARGUMENTS_MAX + 1, LAUNCH_STEP_ARGUMENTS, 0);
  require_failure(IN_FOLDER("absent"), 0, LAUNCH_STEP_OPEN, ENOENT);
  require_failure(folder, 0, LAUNCH_STEP_BINARY, 0);
  REQUIRE(mkfifo("fifo", 0700) == 0);
  require_failure(IN_FOLDER("fifo"), 0, LAUNCH_STEP_BINARY, 0);
  write_file("set-id", "x", 04755);
  require_failure(IN_FOLDER("set-id"), 0, LAUNCH_STEP_BINARY, 0);
  write_file("no-mode", "x", 0644);
  require_failure(IN_FOLDER("no-mode"), 0, LAUNCH_STEP_EXEC, EACCES);
  write_file("no-program", "text\n", 0755);
  require_failure(IN_FOLDER("no-program"), 0, LAUNCH_STEP_EXEC, ENOEXEC);
  /* An interpreter would have to open the script by name; an open descriptor has none. */
  write_file("script", "#!/bin/sh\n", 0755);
  require_failure(IN_FOLDER("script"), 0, LAUNCH_STEP_EXEC, ENOENT);
  struct rlimit few = {.rlim_cur = (rlim_t)open_descriptors() + 3, .rlim_max = 1024};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  require_failure(fixture, 1, LAUNCH_STEP_PIPES, EMFILE);
  few.rlim_cur = 1024;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  static const char *const made[] = {"fifo", "set-id", "no-mode", "no-program", "script"};
  for (size_t at = 0; at < sizeof made / sizeof made[0]; at++) REQUIRE(unlink(made[at]) == 0);
  REQUIRE(rmdir(folder) == 0);
}

static void reports_a_failing_step_of_the_child(void) {
  refuse_call(SYS_setsid, EPERM);
  require_failure(fixture, 1, LAUNCH_STEP_SESSION, EPERM);
}

static void reports_the_failing_limit(void) {
  /* Reading and setting are one system call: the parent's reading fails first. */
  refuse_call(SYS_prlimit64, EPERM);
  require_failure(fixture, 1, LAUNCH_STEP_LIMITS, EPERM);
}

static void never_raises_an_inherited_hard_limit(void) {
  char report[REPORT_MAX];
  struct rlimit inherited = {.rlim_cur = 5, .rlim_max = 7};
  REQUIRE(setrlimit(RLIMIT_CPU, &inherited) == 0);
  struct launch_limits limits = wide_limits();
  struct launch_result worker;
  const char *act = "report";
  REQUIRE(launch_worker(fixture, &act, 1, &limits, &worker) == 0);
  REQUIRE(limits.cpu_seconds == 7 && limits.stack_bytes == 8ULL << 20);
  read_report(&worker, report);
  REQUIRE(says(report, "\"cpu\":[\"7\",\"7\"]") && says(report, "\"core\":[\"0\",\"0\"]"));
}

static void collects_once_and_never_signals_again(void) {
  struct launch_result worker;
  REQUIRE(launch("idle", &worker) == 0);
  struct launch_exit ended;
  REQUIRE(launch_reap(worker.pidfd, &ended) == 0);
  REQUIRE(launch_cpu_ns(worker.pid, worker.pidfd) > 0);
  REQUIRE(launch_kill(worker.pidfd) == 0);
  ended = collect(&worker);
  REQUIRE(ended.code == -1 && ended.signal == SIGKILL);
  REQUIRE(launch_reap(worker.pidfd, &ended) == -ECHILD);
  REQUIRE(launch_kill(worker.pidfd) == -ESRCH);
  REQUIRE(launch_cpu_ns(worker.pid, worker.pidfd) == -ESRCH);
  /* The pid of a living process that is not the pidfd's: what a reused pid looks like. */
  REQUIRE(launch_cpu_ns(getpid(), worker.pidfd) == -ESRCH);
}

static void names_every_step(void) {
  for (int32_t step = 0; step <= LAUNCH_STEP_EXEC; step++) REQUIRE(launch_step_name(step) != NULL);
  REQUIRE(launch_step_name(-1) == NULL && launch_step_name(LAUNCH_STEP_EXEC + 1) == NULL);
}

static void answers_every_host_question(void) {
  struct host_facts facts;
  launch_host_facts(&facts);
  REQUIRE(facts.landlock_abi > 0 || facts.landlock_abi == -ENOSYS || facts.landlock_abi == -EOPNOTSUPP);
  REQUIRE(facts.seccomp_filter == 1 && facts.seccomp_tsync == 1 && facts.seccomp_kill_process == 1);
  REQUIRE(facts.procfs == 1 && facts.page_bytes >= 4096 && facts.own_dumpable == 1);
  refuse_call(SYS_landlock_create_ruleset, EPERM);
  launch_host_facts(&facts);
  REQUIRE(facts.landlock_abi == -EPERM && facts.own_seccomp_mode == 2 && facts.own_no_new_privs == 1);
}

static const struct {
  const char *name;
  void (*body)(void);
} cases[] = {
#define CASE(name) {#name, name}
    CASE(launches_with_standard_descriptors_closed),
    CASE(passes_on_no_descriptor_with_close_range),
    CASE(passes_on_no_descriptor_without_close_range),
    CASE(gives_default_signals_and_keeps_its_own),
    CASE(gives_default_signals_when_proc_cannot_be_read),
    CASE(survives_signals_sent_to_the_group_of_its_parent),
    CASE(refuses_a_second_thread),
    CASE(refuses_a_parent_that_ignores_child_signals),
    CASE(reports_step_and_error_and_leaves_nothing),
    CASE(reports_a_failing_step_of_the_child),
    CASE(reports_the_failing_limit),
    CASE(never_raises_an_inherited_hard_limit),
    CASE(collects_once_and_never_signals_again),
    CASE(names_every_step),
    CASE(answers_every_host_question),
};

int main(void) {
  ssize_t length = readlink("/proc/self/exe", fixture, sizeof fixture - sizeof "launch-fixture");
  messages = fdopen(fcntl(2, F_DUPFD_CLOEXEC, 100), "w");
  if (length <= 0 || messages == NULL) return 70;
  setvbuf(messages, NULL, _IONBF, 0);
  fixture[length] = '\0';
  strcpy(strrchr(fixture, '/') + 1, "launch-fixture");
  int failed = 0;
  for (size_t at = 0; at < sizeof cases / sizeof cases[0]; at++) {
    pid_t pid = fork();
    if (pid < 0) return 71;
    if (pid == 0) {
      cases[at].body();
      exit(0);
    }
    int status;
    if (waitpid(pid, &status, 0) != pid) return 72;
    bool passed = status == 0;
    failed += !passed;
    fprintf(messages, "%s %s\n", passed ? "ok    " : "FAILED", cases[at].name);
  }
  return failed == 0 ? 0 : 1;
}
