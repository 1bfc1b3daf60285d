/*
 * Runs programs as a parent would run a worker, three anonymous pipes and all, and breaks one thing at a time.
 *
 * Called by the confinement tests; never part of a product. Each line of standard input is one run: options, "--",
 * the program and its arguments, separated by tabs. Each run answers with one line of JSON: {"stdout", "stderr",
 * "exit", "signal", "core", "timeout"}, or {"error"} when the run could not be set up as asked, which is never a
 * result. Options:
 *
 *   --user=ID               become this user and group, without other groups
 *   --stdin=KIND --stdout=KIND --stderr=KIND
 *                           pipe (default), file, socket, null, fifo, terminal, nonblock, closed, or other-end (the
 *                           wrong end of a pipe)
 *   --input=TEXT            written to standard input, which is then closed; without it, it stays open and silent
 *   --leave-open            a file, a folder and a socket stay open in the program
 *   --errno=CALL:ARG:VALUE:RESULT
 *                           a filter answers system call number CALL with the error RESULT (0: pretended success) when
 *                           argument ARG (0 to 5) has VALUE in its low word; ARG -1: always
 *   --no-new-privs          set before the program starts
 *   --landlock-layers=N     the program starts inside N Landlock domains that deny only the making of symbolic links
 *   --capability=N          raised as an ambient capability (after --user)
 *   --proc=none|fake|maps   /proc is an empty tmpfs, a tmpfs with a forged status, or has another file over self/maps
 *   --traced                the program starts under ptrace
 *   --set-personality=BITS
 *   --environment=NAME=VALUE
 *   --limit-data=BYTES --limit-cpu=SECONDS
 *   --scratch=FOLDER        a fresh folder is made in FOLDER, given as --scratch=… to the program, removed afterwards
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORDS_MAX = 48, OUTPUT_MAX = 65536, DEADLINE_SECONDS = 30 };
enum { NR_LANDLOCK_CREATE = 444, NR_LANDLOCK_RESTRICT = 446 };

struct run {
  long user;
  const char *kind[3];
  const char *input;
  bool leave_open, no_new_privs, traced;
  long answer[4]; /* call, argument, value, result; call -1: none */
  long landlock_layers, capability, personality, limit_data, limit_cpu;
  const char *proc, *environment, *scratch;
  char **program;
  size_t program_words;
};

struct result {
  char output[3][OUTPUT_MAX];
  size_t length[3];
  int status;
  bool timeout;
};

/* In the child, before the program: the parent reads this text from a pipe that exec closes. */
static int complaint = -1;

_Noreturn static void fail(const char *what) {
  char line[256];
  int length = snprintf(line, sizeof line, "%s: %s", what, strerror(errno));
  if (write(complaint, line, (size_t)length) < 0) _exit(126);
  _exit(127);
}

static int check(int result, const char *what) {
  if (result < 0) fail(what);
  return result;
}

/* ── options ── */

static bool number(const char *text, long *out) {
  char *end;
  errno = 0;
  *out = strtol(text, &end, 0);
  return errno == 0 && end != text && *end == '\0';
}

static const char *value_after(const char *word, const char *name) {
  size_t length = strlen(name);
  return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static bool parse_answer(const char *text, long out[4]) {
  return sscanf(text, "%li:%li:%li:%li", &out[0], &out[1], &out[2], &out[3]) == 4;
}

static bool parse_flag(struct run *run, const char *word) {
  if (strcmp(word, "--leave-open") == 0) return run->leave_open = true;
  if (strcmp(word, "--no-new-privs") == 0) return run->no_new_privs = true;
  if (strcmp(word, "--traced") == 0) return run->traced = true;
  return false;
}

static bool parse_word(struct run *run, const char *word) {
  const struct {
    const char *name;
    long *number;
    const char **text;
  } options[] = {
      {"--user", &run->user, NULL},
      {"--landlock-layers", &run->landlock_layers, NULL},
      {"--capability", &run->capability, NULL},
      {"--set-personality", &run->personality, NULL},
      {"--limit-data", &run->limit_data, NULL},
      {"--limit-cpu", &run->limit_cpu, NULL},
      {"--stdin", NULL, &run->kind[0]},
      {"--stdout", NULL, &run->kind[1]},
      {"--stderr", NULL, &run->kind[2]},
      {"--input", NULL, &run->input},
      {"--proc", NULL, &run->proc},
      {"--environment", NULL, &run->environment},
      {"--scratch", NULL, &run->scratch},
  };
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
    const char *value = value_after(word, options[i].name);
    if (value == NULL) continue;
    if (options[i].number != NULL) return number(value, options[i].number);
    *options[i].text = value;
    return true;
  }
  const char *answer = value_after(word, "--errno");
  if (answer != NULL) return parse_answer(answer, run->answer);
  return parse_flag(run, word);
}

static bool parse(struct run *run, char **words, size_t count) {
  *run = (struct run){.user = -1, .kind = {"pipe", "pipe", "pipe"}, .answer = {-1, -1, 0, 0}, .capability = -1};
  for (size_t i = 0; i < count; i++) {
    if (strcmp(words[i], "--") == 0) {
      run->program = words + i + 1;
      run->program_words = count - i - 1;
      return run->program_words > 0;
    }
    if (!parse_word(run, words[i])) return false;
  }
  return false;
}

/* ── the child ── */

/* The descriptor that becomes `target`, for every kind that is not a plain pipe. */
static int odd_descriptor(const char *kind, int target, const int pipe_ends[2]) {
  bool reads = target == 0;
  int flags = reads ? O_RDONLY : O_WRONLY;
  if (strcmp(kind, "null") == 0) return check(open("/dev/null", flags), "open /dev/null");
  if (strcmp(kind, "file") == 0) {
    char path[] = "/tmp/flowcell-run-XXXXXX";
    int made = check(mkstemp(path), "mkstemp");
    int fd = check(open(path, flags), "open file");
    close(made);
    unlink(path);
    return fd;
  }
  if (strcmp(kind, "socket") == 0) {
    int pair[2];
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
    return pair[0];
  }
  if (strcmp(kind, "fifo") == 0) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/flowcell-run-%d-%d", (int)getpid(), target);
    check(mkfifo(path, 0600), "mkfifo");
    int keep = check(open(path, O_RDWR), "open fifo");
    int fd = check(open(path, flags), "open fifo end");
    (void)keep;
    unlink(path);
    return fd;
  }
  if (strcmp(kind, "terminal") == 0) {
    int master = check(posix_openpt(O_RDWR | O_NOCTTY), "posix_openpt");
    if (grantpt(master) != 0 || unlockpt(master) != 0) fail("unlockpt");
    return check(open(ptsname(master), flags | O_NOCTTY), "open terminal");
  }
  if (strcmp(kind, "nonblock") == 0) {
    check(fcntl(pipe_ends[reads ? 0 : 1], F_SETFL, O_NONBLOCK), "O_NONBLOCK");
    return pipe_ends[reads ? 0 : 1];
  }
  if (strcmp(kind, "other-end") == 0) return pipe_ends[reads ? 1 : 0];
  errno = EINVAL;
  fail(kind);
}

static void set_stdio(const struct run *run, int pipes[3][2]) {
  int chosen[3];
  for (int target = 0; target < 3; target++) {
    chosen[target] = -1;
    if (strcmp(run->kind[target], "closed") == 0) continue;
    int fd = pipes[target][target == 0 ? 0 : 1];
    if (strcmp(run->kind[target], "pipe") != 0) fd = odd_descriptor(run->kind[target], target, pipes[target]);
    /* Out of the way of 0 to 2 first. */
    chosen[target] = check(fcntl(fd, F_DUPFD, 100), "F_DUPFD");
  }
  for (int target = 0; target < 3; target++) {
    if (chosen[target] < 0) {
      close(target);
    } else {
      check(dup2(chosen[target], target), "dup2");
    }
  }
  int keep = check(fcntl(complaint, F_DUPFD_CLOEXEC, 200), "F_DUPFD");
  if (syscall(SYS_close_range, 3, keep - 1, 0) != 0) fail("close_range");
  if (syscall(SYS_close_range, keep + 1, ~0u, 0) != 0) fail("close_range");
  complaint = keep;
  if (run->leave_open) {
    int pair[2];
    check(open("/etc/passwd", O_RDONLY), "leave-open file");
    check(open("/", O_RDONLY | O_DIRECTORY), "leave-open folder");
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "leave-open socket");
  }
}

static void write_file(const char *path, const char *text) {
  int fd = check(open(path, O_WRONLY | O_CREAT, 0644), path);
  if (write(fd, text, strlen(text)) != (ssize_t)strlen(text)) fail(path);
  close(fd);
}

static void set_proc(const char *kind) {
  check(unshare(CLONE_NEWNS), "unshare");
  check(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "make private");
  if (strcmp(kind, "maps") == 0) {
    check(mount("/proc/version", "/proc/self/maps", NULL, MS_BIND, NULL), "bind over maps");
    return;
  }
  check(mount("none", "/proc", "tmpfs", 0, NULL), "tmpfs on /proc");
  if (strcmp(kind, "fake") == 0) {
    check(mkdir("/proc/self", 0755), "mkdir");
    write_file("/proc/self/status", "Name:\tx\nThreads:\t1\nTracerPid:\t0\n");
    write_file("/proc/self/maps", "7ffc0000-7ffd0000 rw-p 00000000 00:00 0   [stack]\n");
  }
}

static void set_layers(long layers) {
  const uint64_t make_symbolic_link = 1u << 12;
  for (long i = 0; i < layers; i++) {
    int ruleset = (int)syscall(NR_LANDLOCK_CREATE, &make_symbolic_link, sizeof make_symbolic_link, 0);
    check(ruleset, "landlock ruleset");
    check((int)syscall(NR_LANDLOCK_RESTRICT, ruleset, 0), "landlock restrict");
    close(ruleset);
  }
}

static void set_capability(long capability) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];
  memset(data, 0, sizeof data);
  struct __user_cap_data_struct *word = &data[capability / 32];
  word->effective = word->permitted = word->inheritable = 1u << (capability % 32);
  check((int)syscall(SYS_capset, &header, data), "capset");
  check(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, (unsigned long)capability, 0, 0), "ambient");
}

static void set_user(const struct run *run) {
  if (run->user < 0) return;
  if (run->capability >= 0) check(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), "keepcaps");
  gid_t group = (gid_t)run->user;
  uid_t user = (uid_t)run->user;
  check(setgroups(0, NULL), "setgroups");
  check(setresgid(group, group, group), "setresgid");
  check(setresuid(user, user, user), "setresuid");
}

/* Answers one call with an error of our choice and lets everything else through. */
static void set_answer(const long answer[4]) {
  bool always = answer[1] < 0;
  struct sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)answer[0], 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
               (uint32_t)(offsetof(struct seccomp_data, args) + (always ? 0 : (size_t)answer[1] * 8))),
      BPF_JUMP(BPF_JMP | (always ? BPF_JA : BPF_JEQ) | BPF_K, always ? 0 : (uint32_t)answer[2], 0, always ? 0 : 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((uint32_t)answer[3] & SECCOMP_RET_DATA)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {sizeof program / sizeof program[0], program};
  if (geteuid() != 0) check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
  check((int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter), "filter");
}

static void set_limit(__rlimit_resource_t resource, long value) {
  if (value <= 0) return;
  struct rlimit limit = {(rlim_t)value, (rlim_t)value};
  check(setrlimit(resource, &limit), "setrlimit");
}

_Noreturn static void child(struct run *run, int pipes[3][2]) {
  check(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "pdeathsig");
  signal(SIGPIPE, SIG_DFL);
  if (run->proc != NULL) set_proc(run->proc);
  set_user(run);
  set_stdio(run, pipes);
  if (run->capability >= 0) set_capability(run->capability);
  if (run->no_new_privs) check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
  if (run->landlock_layers > 0) set_layers(run->landlock_layers);
  if (run->personality != 0) check(personality((unsigned long)run->personality), "personality");
  set_limit(RLIMIT_DATA, run->limit_data);
  set_limit(RLIMIT_CPU, run->limit_cpu);
  check(chdir("/"), "chdir");
  char *environment[2] = {NULL, NULL};
  char variable[256];
  if (run->environment != NULL) {
    snprintf(variable, sizeof variable, "%s", run->environment);
    environment[0] = variable;
  }
  if (run->traced) check((int)ptrace(PTRACE_TRACEME, 0, NULL, NULL), "ptrace");
  if (run->answer[0] >= 0) set_answer(run->answer);
  execve(run->program[0], run->program, environment);
  fail(run->program[0]);
}

/* ── the parent ── */

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void collect(int fds[3], struct result *result, double deadline, pid_t pid) {
  int open_count = 3;
  while (open_count > 0) {
    struct pollfd polls[3];
    for (int i = 0; i < 3; i++) polls[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    double left = deadline - now();
    if (left <= 0 || poll(polls, 3, (int)(left * 1000) + 1) < 0) {
      result->timeout = true;
      kill(pid, SIGKILL);
      return;
    }
    for (int i = 0; i < 3; i++) {
      if (fds[i] < 0 || polls[i].revents == 0) continue;
      size_t room = OUTPUT_MAX - result->length[i];
      ssize_t got = read(fds[i], result->output[i] + result->length[i], room);
      if (got > 0) {
        result->length[i] += (size_t)got;
      } else {
        close(fds[i]);
        fds[i] = -1;
        open_count--;
      }
    }
  }
}

/* A traced child stops at exec and at signals; it is only ever sent on. */
static int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
    int sent = WSTOPSIG(status);
    ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)(sent == SIGTRAP ? 0 : sent));
  }
  return status;
}

static void print_text(const char *name, const char *bytes, size_t length) {
  printf("\"%s\":\"", name);
  for (size_t i = 0; i < length; i++) {
    unsigned char byte = (unsigned char)bytes[i];
    if (byte < 0x20 || byte >= 0x7f || byte == '"' || byte == '\\') {
      printf("\\u%04x", byte);
    } else {
      putchar(byte);
    }
  }
  printf("\"");
}

static void print_result(const struct result *result) {
  putchar('{');
  if (result->length[2] > 0) {
    print_text("error", result->output[2], result->length[2]);
  } else {
    print_text("stdout", result->output[0], result->length[0]);
    putchar(',');
    print_text("stderr", result->output[1], result->length[1]);
    int status = result->status;
    printf(",\"exit\":%d,\"signal\":%d,\"core\":%s,\"timeout\":%s", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
           WIFSIGNALED(status) ? WTERMSIG(status) : 0, WIFSIGNALED(status) && WCOREDUMP(status) ? "true" : "false",
           result->timeout ? "true" : "false");
  }
  puts("}");
  fflush(stdout);
}

static void complain(const char *text) {
  static struct result result;
  memset(&result, 0, sizeof result);
  result.length[2] = (size_t)snprintf(result.output[2], OUTPUT_MAX, "%s", text);
  print_result(&result);
}

static void close_all(int pipes[4][2]) {
  for (int i = 0; i < 4; i++) {
    for (int end = 0; end < 2; end++) {
      if (pipes[i][end] >= 0) close(pipes[i][end]);
    }
  }
}

static void execute(struct run *run) {
  static struct result result;
  memset(&result, 0, sizeof result);
  int pipes[4][2];
  for (int i = 0; i < 4; i++) {
    if (pipe2(pipes[i], O_CLOEXEC) != 0) return complain("pipe2");
  }
  pid_t pid = fork();
  if (pid < 0) {
    close_all(pipes);
    return complain("fork");
  }
  if (pid == 0) {
    complaint = pipes[3][1];
    child(run, pipes);
  }
  /* A traced child must be collected by wait, not starve at its first stop; it prints too little to fill a pipe. */
  if (run->traced) result.status = wait_for(pid);
  int fds[3] = {pipes[1][0], pipes[2][0], pipes[3][0]};
  pipes[1][0] = pipes[2][0] = pipes[3][0] = -1;
  int input = pipes[0][1];
  pipes[0][1] = -1;
  close_all(pipes);
  if (run->input != NULL) {
    if (write(input, run->input, strlen(run->input)) < 0) result.timeout = true;
    close(input);
  }
  collect(fds, &result, now() + DEADLINE_SECONDS, pid);
  for (int i = 0; i < 3; i++) {
    if (fds[i] >= 0) close(fds[i]);
  }
  if (!run->traced) result.status = wait_for(pid);
  if (run->input == NULL) close(input);
  print_result(&result);
}

static void remove_folder(const char *path) {
  DIR *folder = opendir(path);
  if (folder == NULL) return;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (unlinkat(dirfd(folder), entry->d_name, 0) != 0) unlinkat(dirfd(folder), entry->d_name, AT_REMOVEDIR);
  }
  closedir(folder);
  rmdir(path);
}

static void execute_in_scratch(struct run *run) {
  char argument[4096];
  char *words[WORDS_MAX + 2];
  const char prefix[] = "--scratch=";
  snprintf(argument, sizeof argument, "%s%s/run-XXXXXX", prefix, run->scratch);
  char *path = argument + sizeof prefix - 1;
  if (mkdtemp(path) == NULL || chmod(path, 0777) != 0) return complain("mkdtemp");
  memcpy(words, run->program, run->program_words * sizeof words[0]);
  words[run->program_words] = argument;
  words[run->program_words + 1] = NULL;
  run->program = words;
  execute(run);
  remove_folder(path);
}

static void run_line(char *line) {
  char *words[WORDS_MAX + 1];
  size_t count = 0;
  for (char *word = strtok(line, "\t\n"); word != NULL; word = strtok(NULL, "\t\n")) {
    if (count == WORDS_MAX) return complain("too many words");
    words[count++] = word;
  }
  words[count] = NULL;
  struct run run;
  if (!parse(&run, words, count)) {
    complain("unknown option or no program; the head of run_piped.c has the usage");
    return;
  }
  if (run.scratch != NULL) {
    execute_in_scratch(&run);
  } else {
    execute(&run);
  }
}

int main(void) {
  static char line[8192];
  signal(SIGPIPE, SIG_IGN);
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (strchr(line, '\n') == NULL) {
      complain("the line is too long or does not end");
      return 64;
    }
    run_line(line);
  }
  return 0;
}
