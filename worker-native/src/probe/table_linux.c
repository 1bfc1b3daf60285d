/*
 * Every act that the probe can try, in one table (probe.h): what it proves, and what must come of it unconfined, behind
 * Landlock alone, and confined.
 *
 * The Landlock column shows the gaps of that layer on purpose: where it says "ok", only the filter stands between
 * the act and the machine. Outcomes that depend on how a kernel was configured are listed as alternatives; an
 * outcome that is not listed fails the test. Names never change: operators see them.
 */
#include "../base/sys.h"
#include "probe.h"

#define N(value) {.kind = ARG_NUMBER, .number = (long)(value)}
#define P(address) {.kind = ARG_POINTER, .pointer = (address)}
#define R(what) {.kind = ARG_RESOURCE, .resource = (what)}
#define BUFFER P(probe_buffer)

#define ROW(name_, proves_, control_, landlock_, call, ...)                                               \
  {.name = (name_), .proves = (proves_), .control = (control_), .landlock = (landlock_), .confined = "SIGSYS", \
   .number = NR_##call, .args = {__VA_ARGS__}},
#define FORK(name_, proves_, control_, landlock_, call, ...)                                              \
  {.name = (name_), .proves = (proves_), .control = (control_), .landlock = (landlock_), .confined = "SIGSYS", \
   .forks = true, .number = NR_##call, .args = {__VA_ARGS__}},
#define ACT(name_, proves_, control_, landlock_, confined_, function)                                       \
  {.name = (name_), .proves = (proves_), .control = (control_), .landlock = (landlock_),                         \
   .confined = (confined_), .act = (function)},
#define RAW(name_, proves_, control_, landlock_, number_)                                                     \
  {.name = (name_), .proves = (proves_), .control = (control_), .landlock = (landlock_), .confined = "SIGSYS", \
   .number = (number_)},
/* The same outcome in all three ways: what a worker may do. */
#define ALLOWED(name_, outcome, call, ...)                                                                  \
  {.name = (name_), .proves = "admitted", .control = (outcome), .landlock = (outcome), .confined = (outcome),   \
   .number = NR_##call, .args = {__VA_ARGS__}},

/* Constants of the kernel's ABI that only rows use; equal on both architectures unless said. */
enum {
  AT_EMPTY_PATH = 0x1000,
  AT_CWD = SYS_AT_FDCWD,
  O_READ_WRITE = 2,
  O_CREATE = 0100,
  O_PATH_ONLY = 010000000,
  SIGUSR1_NUMBER = 10,
  SIGUSR2_NUMBER = 12,
  SIGTERM_NUMBER = 15,
  SIGCHLD_NUMBER = 17,
  SIGSYS_NUMBER = 31,
  CLONE_NEW_USER = 0x10000000,
  CLONE_VM_VFORK = 0x100 | 0x4000,
  READ_WRITE = 3,
  PRIVATE_ANONYMOUS = 0x22
};

static const uint64_t open_how[3] = {0, 0, 0};
static const char *const run_me[] = {"probe", "--executed", NULL};
static const char *const no_environment[] = {NULL};
static const uint64_t clone_arguments[8] = {[4] = SIGCHLD_NUMBER};
static const struct {
  const void *base;
  uint64_t length;
} eight_bytes = {probe_buffer, 8}, no_bytes = {probe_buffer, 0};
static const uint8_t message_header[56];
static const uint32_t perf_attributes[32] = {1, 112};
static const uint32_t capability_header[2] = {0x20080522, 0};
static const uint64_t no_limit_change[2] = {0, 0};
static const uint64_t affinity = 1;
static const int64_t no_time[4] = {0, 1000, 0, 0};
static const int64_t timer_off[4];
static const uint64_t signal_set = 0;
static const uint64_t signal_ignore[4] = {1, 0, 0, 0};
/* siginfo: number, errno, code SI_QUEUE (-1). */
static const int32_t signal_info[32] = {SIGUSR1_NUMBER, 0, -1};
static const uint32_t action_allow = 0x7fff0000;
static const uint32_t handle_header[40] = {128, 0};
static const uint32_t futex_word = 0;

const struct probe_row PROBE_ROWS[] = {
    /* ── files ── */
    ROW("open-file", "filesystem_deny", "ok", "EACCES", openat, N(AT_CWD), R(PATH_FILE))
    ROW("open-root-folder", "filesystem_deny", "ok", "EACCES", openat, N(AT_CWD), P("/"))
    ROW("create-file", "filesystem_deny", "ok", "EACCES", openat, N(AT_CWD), R(PATH_NEW),
        N(O_CREATE | O_READ_WRITE), N(0600))
    ROW("open-own-maps", "filesystem_deny", "ok", "EACCES", openat, N(AT_CWD), P("/proc/self/maps"))
    ROW("open-path-only", "filesystem_deny", "ok", "ok", openat, N(AT_CWD), R(PATH_FILE), N(O_PATH_ONLY))
    ROW("open-beneath-folder", "filesystem_deny", "ok", "EACCES", openat, R(FD_FOLDER), P("file"))
    ROW("openat2", "filesystem_deny", "ok", "EACCES", openat2, N(AT_CWD), R(PATH_FILE), P(open_how), N(24))
    ROW("stat-at", "filesystem_deny", "ok", "ok", newfstatat, N(AT_CWD), R(PATH_FILE), BUFFER, N(0))
    ROW("statx", "filesystem_deny", "ok", "ok", statx, N(AT_CWD), R(PATH_FILE), N(0), N(0x7ff), BUFFER)
    ROW("fstat-stdin", "filesystem_deny", "ok", "ok", fstat, N(0), BUFFER)
    ROW("statfs", "filesystem_deny", "ok", "ok", statfs, R(PATH_FOLDER), BUFFER)
    ROW("access", "filesystem_deny", "ok", "ok", faccessat, N(AT_CWD), R(PATH_FILE), N(4))
    ROW("readlink", "filesystem_deny", "ok", "ok", readlinkat, N(AT_CWD), P("/proc/self/exe"), BUFFER, N(64))
    ROW("getdents-inherited", "filesystem_deny", "ok", "ok", getdents64, R(FD_FOLDER), BUFFER, N(512))
    ROW("read-inherited", "descriptor_closed", "ok", "ok", read, R(FD_FILE), BUFFER, N(1))
    ROW("write-inherited", "descriptor_closed", "ok", "ok", write, R(FD_FILE), BUFFER, N(1))
    ROW("truncate", "filesystem_deny", "ok", "ok<3:EACCES", truncate, R(PATH_FILE), N(0))
    ROW("ftruncate-inherited", "filesystem_deny", "ok", "ok", ftruncate, R(FD_FILE), N(0))
    ROW("unlink", "filesystem_deny", "ok", "EACCES", unlinkat, N(AT_CWD), R(PATH_FILE), N(0))
    ROW("rename", "filesystem_deny", "ok", "EACCES", renameat2, N(AT_CWD), R(PATH_FILE), N(AT_CWD), R(PATH_NEW))
    ROW("link", "filesystem_deny", "ok", "EACCES", linkat, N(AT_CWD), R(PATH_FILE), N(AT_CWD), R(PATH_NEW))
    ROW("symlink", "filesystem_deny", "ok", "EACCES", symlinkat, P("/etc"), N(AT_CWD), R(PATH_NEW))
    ROW("mkdir", "filesystem_deny", "ok", "EACCES", mkdirat, N(AT_CWD), R(PATH_NEW), N(0700))
    ROW("mknod-fifo", "filesystem_deny", "ok", "EACCES", mknodat, N(AT_CWD), R(PATH_NEW), N(0010600))
    ROW("chmod", "filesystem_deny", "ok", "ok", fchmodat, N(AT_CWD), R(PATH_FILE), N(0666))
    ROW("chown", "filesystem_deny", "ok", "ok", fchownat, N(AT_CWD), R(PATH_FILE), N(-1), N(-1))
    ROW("utimens", "filesystem_deny", "ok", "ok", utimensat, N(AT_CWD), R(PATH_FILE), N(0))
    ROW("setxattr", "filesystem_deny", "ok|EOPNOTSUPP", "ok|EOPNOTSUPP", setxattr, R(PATH_FILE), P("user.probe"), BUFFER,
        N(1))
    ROW("getxattr", "filesystem_deny", "ENODATA|EOPNOTSUPP", "ENODATA|EOPNOTSUPP", getxattr, R(PATH_FILE),
        P("user.none"), BUFFER, N(1))
    ROW("chdir", "filesystem_deny", "ok", "ok", chdir, R(PATH_FOLDER))
    ROW("fchdir-inherited", "filesystem_deny", "ok", "ok", fchdir, R(FD_FOLDER))
    ROW("getcwd", "filesystem_deny", "ok", "ok", getcwd, BUFFER, N(512))
    ROW("flock-inherited", "filesystem_deny", "ok", "ok", flock, R(FD_FILE), N(1))
    ROW("lseek-stdin", "filesystem_deny", "ESPIPE", "ESPIPE", lseek, N(0), N(0), N(1))
    ROW("umask", "filesystem_deny", "ok", "ok", umask, N(0))
    ROW("name-to-handle", "filesystem_deny", "EFAULT|EOPNOTSUPP|EOVERFLOW", "EFAULT|EOPNOTSUPP|EOVERFLOW",
        name_to_handle_at, N(AT_CWD), P("/"), P(handle_header), N(0), N(0))
    ROW("inotify-init", "filesystem_deny", "ok", "ok", inotify_init1, N(0))
    ROW("fanotify-init", "filesystem_deny", "EPERM", "EPERM", fanotify_init, N(0), N(0))
    ROW("chroot", "filesystem_deny", "EPERM", "EPERM", chroot, P("/"))
    ROW("mount-tmpfs", "filesystem_deny", "EPERM", "EPERM", mount, P("none"), P("/mnt"), P("tmpfs"), N(0), N(0))
    ROW("umount", "filesystem_deny", "EPERM", "EPERM", umount2, P("/"), N(0))
    ROW("pivot-root", "filesystem_deny", "EPERM", "EPERM", pivot_root, P("/"), P("/"))
    ROW("open-tree", "filesystem_deny", "ok", "ok", open_tree, N(AT_CWD), P("/"), N(0))
    ROW("fsopen", "filesystem_deny", "EPERM", "EPERM", fsopen, P("tmpfs"), N(0))
    ROW("mount-setattr", "filesystem_deny", "EPERM|ENOSYS", "EPERM|ENOSYS", mount_setattr, N(AT_CWD), P("/"), N(0),
        BUFFER, N(32))
    ROW("quotactl", "filesystem_deny", "EPERM|ENODEV|ENOSYS|EINVAL|ENOTBLK|EFAULT|ENOENT",
        "EPERM|ENODEV|ENOSYS|EINVAL|ENOTBLK|EFAULT|ENOENT|EACCES", quotactl, N(0), N(0), N(0), N(0))
    ROW("copy-file-range", "filesystem_deny", "EINVAL|EBADF", "EINVAL|EBADF", copy_file_range, R(FD_FILE), N(0), N(1),
        N(0), N(1), N(0))
    ROW("cachestat", "filesystem_deny", "ok|ENOSYS", "ok|ENOSYS", cachestat, R(FD_FILE), P(no_limit_change), BUFFER,
        N(0))

    /* ── programs ── */
    ROW("execve", "process_deny", "executed", "EACCES", execve, P("/proc/self/exe"), P(run_me), P(no_environment))
    ROW("execveat-inherited", "process_deny", "executed", "EACCES", execveat, R(FD_PROGRAM), P(""), P(run_me),
        P(no_environment), N(AT_EMPTY_PATH))
    ROW("memfd-create", "process_deny", "ok", "ok", memfd_create, P("probe"), N(0))
    ROW("memfd-secret", "process_deny", "ok|ENOSYS", "ok|ENOSYS", memfd_secret, N(0))

    /* ── processes and threads ── */
#if defined(__x86_64__)
    FORK("fork", "process_deny", "ok", "ok", fork, N(0))
    FORK("vfork", "process_deny", "ok", "ok", vfork, N(0))
#endif
    FORK("clone", "process_deny", "ok", "ok", clone, N(SIGCHLD_NUMBER), N(0), N(0), N(0), N(0))
    FORK("clone-vfork", "process_deny", "ok", "ok", clone, N(CLONE_VM_VFORK | SIGCHLD_NUMBER), N(0), N(0), N(0), N(0))
    FORK("clone3", "process_deny", "ok", "ok", clone3, P(clone_arguments), N(64))
    ACT("thread", "thread_deny", "ok", "ok", "SIGSYS", act_start_thread)
    ROW("unshare-user", "process_deny", "ok|EPERM|ENOSPC", "ok|EPERM|ENOSPC", unshare, N(CLONE_NEW_USER))
    ROW("setns", "process_deny", "EINVAL", "EINVAL", setns, R(FD_FILE), N(0))
    ROW("wait4", "process_deny", "ECHILD", "ECHILD", wait4, N(-1), N(0), N(1), N(0))
    ROW("setsid", "process_deny", "ok|EPERM", "ok|EPERM", setsid, N(0))
    ROW("setpgid", "process_deny", "ok|EPERM", "ok|EPERM", setpgid, N(0), N(0))
    ROW("prlimit-own", "process_deny", "ok", "ok", prlimit64, N(0), N(4), N(0), BUFFER)
    ROW("prlimit-sibling", "process_deny", "ok", "ok", prlimit64, R(PID_SIBLING), N(4), P(no_limit_change), N(0))
    ROW("setpriority", "process_deny", "ok", "ok", setpriority, N(0), N(0), N(5))
    ROW("sched-setaffinity", "process_deny", "ok|EINVAL", "ok|EINVAL", sched_setaffinity, N(0), N(8), P(&affinity))
    ROW("sched-yield", "process_deny", "ok", "ok", sched_yield, N(0))
    ROW("exit-thread-only", "process_deny", "exit 0", "exit 0", exit, N(0))
    ROW("getpid", "syscall_filter", "ok", "ok", getpid, N(0))
    ROW("gettid", "syscall_filter", "ok", "ok", gettid, N(0))
    ROW("getppid", "syscall_filter", "ok", "ok", getppid, N(0))
    ROW("getuid", "syscall_filter", "ok", "ok", getuid, N(0))

    /* ── privileges ── */
    ROW("setuid-root", "identity_dropped", "EPERM", "EPERM", setuid, N(0))
    ROW("setresuid-own", "identity_dropped", "ok", "ok", setresuid, N(-1), N(-1), N(-1))
    ROW("setgroups", "identity_dropped", "EPERM", "EPERM", setgroups, N(0), N(0))
    ROW("capset", "identity_dropped", "ok", "ok", capset, P(capability_header), BUFFER)
    ROW("capget", "identity_dropped", "ok", "ok", capget, P(capability_header), BUFFER)
    ROW("init-module", "syscall_filter", "EPERM|ENOSYS", "EPERM|ENOSYS", init_module, N(0), N(0), P(""))
    ROW("finit-module", "syscall_filter", "EPERM|ENOSYS", "EPERM|ENOSYS", finit_module, N(0), P(""), N(0))
    ROW("kexec-load", "syscall_filter", "EPERM|ENOSYS", "EPERM|ENOSYS", kexec_load, N(0), N(0), N(0), N(0))
    ROW("clock-settime", "syscall_filter", "EPERM", "EPERM", clock_settime, N(0), P(no_time))
    ROW("reboot-wrong-magic", "syscall_filter", "EPERM|EINVAL", "EPERM|EINVAL", reboot, N(1), N(2), N(3), N(0))
    ROW("swapon", "syscall_filter", "EPERM|ENOSYS", "EPERM|ENOSYS", swapon, P("/none"), N(0))
    ROW("acct", "syscall_filter", "EPERM|ENOSYS", "EPERM|ENOSYS", acct, N(0))
    ROW("syslog", "syscall_filter", "ok|EPERM|ENOSYS", "ok|EPERM|ENOSYS", syslog, N(10), N(0), N(0))
    ROW("sethostname", "syscall_filter", "EPERM", "EPERM", sethostname, P("x"), N(1))

    /* ── network ── */
    ROW("socket-tcp", "network_deny", "ok", "ok", socket, N(2), N(1), N(0))
    ROW("socket-tcp6", "network_deny", "ok|EAFNOSUPPORT", "ok|EAFNOSUPPORT", socket, N(10), N(1), N(0))
    ROW("socket-udp", "network_deny", "ok", "ok", socket, N(2), N(2), N(0))
    ROW("socket-icmp-raw", "network_deny", "EPERM", "EPERM", socket, N(2), N(3), N(1))
    ROW("socket-unix", "network_deny", "ok", "ok", socket, N(1), N(1), N(0))
    ROW("socket-netlink", "network_deny", "ok", "ok", socket, N(16), N(3), N(0))
    ROW("socket-vsock", "network_deny", "ok|EAFNOSUPPORT", "ok|EAFNOSUPPORT", socket, N(40), N(1), N(0))
    ROW("socket-alg", "network_deny", "ok|EAFNOSUPPORT", "ok|EAFNOSUPPORT", socket, N(38), N(5), N(0))
    ROW("socket-packet", "network_deny", "EPERM|EAFNOSUPPORT", "EPERM|EAFNOSUPPORT", socket, N(17), N(3), N(0))
    ROW("socketpair", "network_deny", "ok", "ok", socketpair, N(1), N(1), N(0), BUFFER)
    ROW("connect-tcp", "network_deny", "ok", "ok<4:EACCES", connect, R(FD_TCP), R(ADDRESS_TCP), N(16))
    ROW("connect-mptcp", "network_deny", "ok", "ok", connect, R(FD_MPTCP), R(ADDRESS_TCP), N(16))
    ROW("bind-tcp", "network_deny", "ok", "ok<4:EACCES", bind, R(FD_TCP), R(ADDRESS_ANY), N(16))
    ROW("bind-udp", "network_deny", "ok", "ok<10:EACCES", bind, R(FD_UDP), R(ADDRESS_ANY), N(16))
    ROW("listen-unbound", "network_deny", "ok", "ok", listen, R(FD_TCP), N(1))
    ROW("send-udp", "network_deny", "ok|ECONNREFUSED", "ok|ECONNREFUSED<10:EACCES", sendto, R(FD_UDP), BUFFER, N(1),
        N(0), R(ADDRESS_UDP), N(16))
    ROW("tcp-fast-open", "network_deny", "ok", "ok|EACCES", sendto, R(FD_TCP), BUFFER, N(1), N(0x20000000),
        R(ADDRESS_TCP), N(16))
    ROW("connect-abstract", "network_deny", "ok", "ok<6:EPERM", connect, R(FD_UNIX), R(ADDRESS_ABSTRACT), N(110))
    ROW("connect-path", "network_deny", "ok", "ok<9:EACCES", connect, R(FD_UNIX), R(ADDRESS_PATH), N(110))
    ROW("send-inherited", "network_deny", "ok", "ok", sendto, R(FD_CONNECTED), BUFFER, N(1), N(0), N(0), N(0))
    ROW("shutdown-inherited", "network_deny", "ok", "ok", shutdown, R(FD_CONNECTED), N(2))
    ROW("getsockopt-inherited", "network_deny", "ENOTSOCK", "ENOTSOCK", getsockopt, N(0), N(1), N(3), BUFFER,
        P(probe_buffer + 64))
    ROW("sendmsg-stdout", "network_deny", "ENOTSOCK", "ENOTSOCK", sendmsg, N(1), P(message_header), N(0))
    ROW("recvmsg-stdin", "network_deny", "ENOTSOCK", "ENOTSOCK", recvmsg, N(0), P(message_header), N(0))
    ROW("accept-inherited", "network_deny", "ENOTSOCK", "ENOTSOCK", accept4, N(0), N(0), N(0), N(0))

    /* ── signals and other processes ── */
    ROW("kill-parent", "signal_deny", "ok|EPERM", "ok|EPERM<6:EPERM", kill, R(PID_PARENT), N(0))
    ROW("kill-sibling", "signal_deny", "ok", "ok<6:EPERM", kill, R(PID_SIBLING), N(SIGUSR1_NUMBER))
    ROW("tgkill-sibling", "signal_deny", "ok", "ok<6:EPERM", tgkill, R(PID_SIBLING), R(PID_SIBLING), N(SIGUSR1_NUMBER))
    ROW("tkill-sibling", "signal_deny", "ok", "ok<6:EPERM", tkill, R(PID_SIBLING), N(SIGUSR1_NUMBER))
    ROW("sigqueue-sibling", "signal_deny", "ok", "ok<6:EPERM", rt_sigqueueinfo, R(PID_SIBLING), N(SIGUSR1_NUMBER),
        P(signal_info))
    ROW("pidfd-signal-sibling", "signal_deny", "ok", "ok<6:EPERM", pidfd_send_signal, R(FD_SIBLING), N(SIGUSR1_NUMBER),
        N(0), N(0))
    ROW("tgkill-self", "signal_deny", "SIGUSR2", "SIGUSR2", tgkill, R(PID_SELF), R(PID_SELF), N(SIGUSR2_NUMBER))
    ROW("kill-self-term", "signal_deny", "SIGTERM", "SIGTERM", kill, R(PID_SELF), N(SIGTERM_NUMBER))
    ROW("set-owner-sibling", "signal_deny", "ok", "ok", fcntl, N(0), N(8), R(PID_SIBLING))
    ROW("pidfd-open", "ptrace_deny", "ok", "ok", pidfd_open, R(PID_SIBLING), N(0))
    ROW("pidfd-getfd", "ptrace_deny", "EBADF", "EPERM", pidfd_getfd, R(FD_SIBLING), N(0), N(0))
    ROW("ptrace-attach", "ptrace_deny", "ok|EPERM", "EPERM", ptrace, N(16), R(PID_SIBLING), N(0), N(0))
    ROW("ptrace-traceme", "ptrace_deny", "ok", "ok", ptrace, N(0), N(0), N(0), N(0))
    ROW("process-vm-readv", "ptrace_deny", "ok|EPERM", "EPERM", process_vm_readv, R(PID_SIBLING), P(&eight_bytes), N(1),
        P(&eight_bytes), N(1), N(0))
    ROW("process-vm-writev", "ptrace_deny", "ok|EPERM", "EPERM", process_vm_writev, R(PID_SIBLING), P(&eight_bytes),
        N(1), P(&eight_bytes), N(1), N(0))
    ROW("kcmp", "ptrace_deny", "ok|EPERM|ENOSYS", "EPERM|ENOSYS", kcmp, R(PID_SELF), R(PID_SIBLING), N(1), N(0), N(0))
    ROW("process-madvise", "ptrace_deny", "ok|EPERM|EINVAL", "EPERM|EACCES|EINVAL", process_madvise, R(FD_SIBLING),
        P(&eight_bytes), N(1), N(20), N(0))
    ROW("process-mrelease", "ptrace_deny", "EINVAL|ENOSYS|EBADF", "EINVAL|ENOSYS|EBADF", process_mrelease, N(-1), N(0))
    ROW("clock-of-parent", "syscall_filter", "ok", "ok", clock_gettime, R(CLOCK_OF_PARENT), BUFFER)

    /* ── memory ── */
    ROW("mmap-executable", "exec_memory_deny", "ok", "ok", mmap, N(0), N(4096), N(5), N(PRIVATE_ANONYMOUS), N(-1), N(0))
    ROW("mmap-write-execute", "exec_memory_deny", "ok", "ok", mmap, N(0), N(4096), N(7), N(PRIVATE_ANONYMOUS), N(-1),
        N(0))
    ROW("mmap-private", "exec_memory_deny", "ok", "ok", mmap, N(0), N(4096), N(READ_WRITE), N(PRIVATE_ANONYMOUS), N(-1),
        N(0))
    ROW("mmap-shared", "exec_memory_deny", "ok", "ok", mmap, N(0), N(4096), N(READ_WRITE), N(0x21), N(-1), N(0))
    ROW("mmap-file", "exec_memory_deny", "ok", "ok", mmap, N(0), N(4096), N(1), N(2), R(FD_FILE), N(0))
    ROW("mmap-program-executable", "exec_memory_deny", "ok", "ok", mmap, N(0), N(4096), N(5), N(2), R(FD_PROGRAM), N(0))
    ROW("mmap-address-zero", "exec_memory_deny", "EPERM|EACCES", "EPERM|EACCES", mmap, N(0), N(4096), N(READ_WRITE),
        N(PRIVATE_ANONYMOUS | 0x10), N(-1), N(0))
    ROW("mprotect-executable", "exec_memory_deny", "ok", "ok", mprotect, R(MEMORY_PAGE), N(4096), N(5))
    ROW("mprotect-execute-only", "exec_memory_deny", "ok", "ok", mprotect, R(MEMORY_PAGE), N(4096), N(4))
    ROW("mprotect-write-execute", "exec_memory_deny", "ok", "ok", mprotect, R(MEMORY_PAGE), N(4096), N(7))
    ROW("mprotect-read-only", "exec_memory_deny", "ok", "ok", mprotect, R(MEMORY_PAGE), N(4096), N(1))
    ROW("mprotect-grows-down", "exec_memory_deny", "EINVAL", "EINVAL", mprotect, R(MEMORY_PAGE), N(4096), N(0x01000003))
    ROW("mprotect-high-bit", "exec_memory_deny", "ok|EINVAL", "ok|EINVAL", mprotect, R(MEMORY_PAGE), N(4096),
        N((1L << 40) | READ_WRITE))
    ROW("pkey-mprotect", "exec_memory_deny", "ok|ENOSYS", "ok|ENOSYS", pkey_mprotect, R(MEMORY_PAGE), N(4096), N(5), N(-1))
    ROW("pkey-alloc", "exec_memory_deny", "ok|EINVAL|ENOSPC|ENOSYS", "ok|EINVAL|ENOSPC|ENOSYS", pkey_alloc, N(0), N(0))
    ACT("execute-data", "exec_memory_deny", "SIGSEGV", "SIGSEGV", "SIGSEGV", act_call_own_stack)
    ROW("munmap", "syscall_filter", "ok", "ok", munmap, R(MEMORY_PAGE), N(4096))
    ROW("mremap", "syscall_filter", "ok", "ok", mremap, R(MEMORY_PAGE), N(4096), N(8192), N(1), N(0))
    ROW("brk", "syscall_filter", "ok", "ok", brk, N(0))
    ROW("remap-file-pages", "syscall_filter", "EINVAL|ENOSYS", "EINVAL|ENOSYS", remap_file_pages, R(MEMORY_PAGE),
        N(4096), N(0), N(0), N(0))
    ROW("madvise-free", "syscall_filter", "ok", "ok", madvise, R(MEMORY_PAGE), N(4096), N(8))
    ROW("madvise-wipe-on-fork", "syscall_filter", "ok", "ok", madvise, R(MEMORY_PAGE), N(4096), N(18))
    ROW("madvise-remove", "syscall_filter", "EINVAL", "EINVAL", madvise, R(MEMORY_PAGE), N(4096), N(9))
    ROW("madvise-hwpoison", "syscall_filter", "EPERM|EINVAL", "EPERM|EINVAL", madvise, R(MEMORY_PAGE), N(4096), N(100))
    ROW("mlock", "syscall_filter", "ok|ENOMEM|EPERM", "ok|ENOMEM|EPERM", mlock, R(MEMORY_PAGE), N(4096))
    ROW("mincore", "syscall_filter", "ok", "ok", mincore, R(MEMORY_PAGE), N(4096), BUFFER)
    ROW("msync", "syscall_filter", "ok", "ok", msync, R(MEMORY_PAGE), N(4096), N(1))
    ROW("mseal", "syscall_filter", "ok|ENOSYS", "ok|ENOSYS", mseal, R(MEMORY_PAGE), N(4096), N(0))
    ROW("userfaultfd", "syscall_filter", "ok|EPERM|EINVAL|ENOSYS", "ok|EPERM|EINVAL|ENOSYS", userfaultfd, N(1))
    ROW("set-mempolicy", "syscall_filter", "ok|ENOSYS", "ok|ENOSYS", set_mempolicy, N(0), N(0), N(0))
    ROW("map-shadow-stack", "syscall_filter", "ok|EOPNOTSUPP|ENOSYS|EINVAL", "ok|EOPNOTSUPP|ENOSYS|EINVAL",
        map_shadow_stack, N(0), N(4096), N(0))

    /* ── communication between processes ── */
    ROW("shmget", "syscall_filter", "ok|ENOSYS", "ok|ENOSYS", shmget, N(0), N(4096), N(01600))
    ROW("msgget", "syscall_filter", "ok|ENOSYS", "ok|ENOSYS", msgget, N(0), N(01600))
    ROW("semget", "syscall_filter", "ok|ENOSYS", "ok|ENOSYS", semget, N(0), N(1), N(01600))
    ROW("mq-open", "syscall_filter", "ENOENT|ENOSYS|EACCES", "ENOENT|ENOSYS|EACCES", mq_open, P("flowcell-probe-none"),
        N(2), N(0600), N(0))
    ROW("pipe2", "syscall_filter", "ok", "ok", pipe2, BUFFER, N(0))
    ROW("eventfd", "syscall_filter", "ok", "ok", eventfd2, N(0), N(0))
    ROW("signalfd", "syscall_filter", "ok", "ok", signalfd4, N(-1), P(&signal_set), N(8), N(0))
    ROW("timerfd", "syscall_filter", "ok", "ok", timerfd_create, N(1), N(0))
    ROW("epoll-create", "syscall_filter", "ok", "ok", epoll_create1, N(0))
    ROW("epoll-wait", "syscall_filter", "ok", "ok", epoll_pwait, R(FD_EPOLL), BUFFER, N(1), N(0), N(0), N(8))
    ROW("ppoll", "syscall_filter", "ok", "ok", ppoll, N(0), N(0), P(no_time), N(0), N(8))
    ROW("futex", "syscall_filter", "ok", "ok", futex, P(&futex_word), N(129), N(1), N(0), N(0), N(0))
    ROW("futex-waitv", "syscall_filter", "EINVAL|ENOSYS", "EINVAL|ENOSYS", futex_waitv, N(0), N(0), N(0), N(0), N(0))
    ROW("membarrier", "syscall_filter", "ok|ENOSYS", "ok|ENOSYS", membarrier, N(0), N(0), N(0))
    ROW("rseq", "syscall_filter", "EINVAL|ENOSYS", "EINVAL|ENOSYS", rseq, N(0), N(0), N(0), N(0))

    /* ── kernel interfaces with a history ── */
    ROW("bpf-map-create", "syscall_filter", "EPERM|EINVAL|ENOSYS", "EPERM|EINVAL|ENOSYS", bpf, N(0), BUFFER, N(72))
    ROW("perf-event-open", "syscall_filter", "ok|EACCES|EPERM|ENOENT|ENOSYS|EOPNOTSUPP",
        "ok|EACCES|EPERM|ENOENT|ENOSYS|EOPNOTSUPP", perf_event_open, P(perf_attributes), N(0), N(-1), N(-1), N(0))
    ROW("io-uring-setup", "syscall_filter", "ok|EPERM|ENOSYS", "ok|EPERM|ENOSYS", io_uring_setup, N(1), BUFFER)
    ROW("io-uring-enter", "syscall_filter", "EOPNOTSUPP|EBADF|EPERM|ENOSYS", "EOPNOTSUPP|EBADF|EPERM|ENOSYS",
        io_uring_enter, N(0), N(1), N(0), N(0), N(0), N(0))
    ROW("io-setup", "syscall_filter", "ok|ENOSYS", "ok|ENOSYS", io_setup, N(1), BUFFER)
    ROW("keyctl", "syscall_filter", "ok|ENOSYS|EPERM", "ok|ENOSYS|EPERM", keyctl, N(0), N(-3), N(1))
    ROW("add-key", "syscall_filter", "ok|ENOSYS|EPERM", "ok|ENOSYS|EPERM", add_key, P("user"), P("probe"), P("v"), N(1),
        N(-3))
    ROW("seccomp-query", "syscall_filter", "ok", "ok", seccomp, N(2), N(0), P(&action_allow))
    ACT("seccomp-allow-all", "syscall_filter", "ok|EACCES", "ok", "SIGSYS", act_set_allow_all_filter)
    ROW("landlock-ruleset", "syscall_filter", "ok|ENOSYS|EOPNOTSUPP", "ok", landlock_create_ruleset, N(0), N(0), N(1))
    ROW("lsm-self-attribute", "syscall_filter", "EINVAL|ENOSYS|EOPNOTSUPP|E2BIG", "EINVAL|ENOSYS|EOPNOTSUPP|E2BIG",
        lsm_get_self_attr, N(100), N(0), BUFFER, N(0))
    ROW("prctl-dumpable", "syscall_filter", "ok", "ok", prctl, N(4), N(1))
    ROW("prctl-name", "syscall_filter", "ok", "ok", prctl, N(15), P("probe"))
    ROW("prctl-mm", "syscall_filter", "EPERM|EINVAL", "EPERM|EINVAL", prctl, N(35), N(1), N(0x10000))
    ROW("personality", "syscall_filter", "ok", "ok", personality, N(0x0400000))
    ROW("restart-syscall", "syscall_filter", "EINTR", "EINTR", restart_syscall, N(0))

    /* ── clocks and timers ── */
    ROW("clock-realtime", "syscall_filter", "ok", "ok", clock_gettime, N(0), BUFFER)
    ROW("clock-monotonic", "syscall_filter", "ok", "ok", clock_gettime, N(1), BUFFER)
    ROW("clock-process-cpu", "syscall_filter", "ok", "ok", clock_gettime, N(2), BUFFER)
    ROW("clock-boottime", "syscall_filter", "ok", "ok", clock_gettime, N(7), BUFFER)
    ROW("clock-realtime-alarm", "syscall_filter", "ok|EINVAL", "ok|EINVAL", clock_gettime, N(8), BUFFER)
    ROW("clock-tai", "syscall_filter", "ok", "ok", clock_gettime, N(11), BUFFER)
    ROW("clock-getres", "syscall_filter", "ok", "ok", clock_getres, N(3), BUFFER)
    ROW("clock-nanosleep", "syscall_filter", "ok", "ok", clock_nanosleep, N(1), N(0), P(no_time), N(0))
    ROW("nanosleep", "syscall_filter", "ok", "ok", nanosleep, P(no_time), N(0))
    ROW("setitimer", "syscall_filter", "ok", "ok", setitimer, N(0), P(timer_off), N(0))
    ROW("timer-create", "syscall_filter", "ok", "ok", timer_create, N(1), N(0), BUFFER)
    ROW("gettimeofday", "syscall_filter", "ok", "ok", gettimeofday, BUFFER, N(0))
    ROW("adjtimex", "syscall_filter", "ok", "ok", adjtimex, BUFFER)

    /* ── descriptors ── */
    ROW("dup", "syscall_filter", "ok", "ok", dup, N(0))
    ROW("dup3", "syscall_filter", "ok", "ok", dup3, N(0), N(9), N(0))
    ROW("fcntl-dup", "syscall_filter", "ok", "ok", fcntl, N(0), N(0), N(5))
    ROW("fcntl-nonblock", "syscall_filter", "ok", "ok", fcntl, N(0), N(4), N(04000))
    ROW("close-stdin", "syscall_filter", "ok", "ok", close, N(0))
    ROW("close-range", "syscall_filter", "ok", "ok", close_range, N(3), N(0xffffffffu), N(0))
    ROW("ioctl-tiocsti", "syscall_filter", "ENOTTY", "ENOTTY", ioctl, N(0), N(0x5412), BUFFER)
    ROW("ioctl-window-size", "syscall_filter", "ENOTTY", "ENOTTY", ioctl, N(0), N(0x5413), BUFFER)
    ROW("ioctl-device", "syscall_filter", "ENOTTY", "ENOTTY", ioctl, R(FD_DEVICE), N(0x1260), BUFFER)
    ROW("readv-stdin", "syscall_filter", "ok", "ok", readv, N(0), P(&no_bytes), N(1))
    ROW("writev-stdout", "syscall_filter", "ok", "ok", writev, N(1), P(&no_bytes), N(1))
    ROW("pread-stdin", "syscall_filter", "ESPIPE", "ESPIPE", pread64, N(0), BUFFER, N(1), N(0))
    ROW("splice-pipes", "syscall_filter", "EAGAIN|ok", "EAGAIN|ok", splice, N(0), N(0), N(1), N(0), N(1), N(2))
    ROW("tee-pipes", "syscall_filter", "EAGAIN|ok", "EAGAIN|ok", tee, N(0), N(1), N(1), N(2))
    ROW("vmsplice-stdout", "syscall_filter", "ok", "ok", vmsplice, N(1), P(&no_bytes), N(1), N(2))
    ROW("sendfile", "syscall_filter", "ok", "ok", sendfile, N(1), R(FD_FILE), N(0), N(0))

    /* ── information ── */
    ROW("sysinfo", "syscall_filter", "ok", "ok", sysinfo, BUFFER)
    ROW("uname", "syscall_filter", "ok", "ok", uname, BUFFER)
    ROW("getcpu", "syscall_filter", "ok", "ok", getcpu, BUFFER, N(0), N(0))
    ROW("getrusage", "syscall_filter", "ok", "ok", getrusage, N(0), BUFFER)
    ROW("times", "syscall_filter", "ok", "ok", times, BUFFER)
    ROW("getrandom", "syscall_filter", "ok", "ok", getrandom, BUFFER, N(8), N(0))
    ROW("getrandom-random", "syscall_filter", "ok|EAGAIN", "ok|EAGAIN", getrandom, BUFFER, N(8), N(3))

    /* ── signal handling ── */
    ROW("sigaction-ignore-sigsys", "syscall_filter", "ok", "ok", rt_sigaction, N(SIGSYS_NUMBER), P(signal_ignore), N(0),
        N(8))
    ROW("sigprocmask", "syscall_filter", "ok", "ok", rt_sigprocmask, N(0), P(&signal_set), N(0), N(8))
    ROW("sigaltstack", "syscall_filter", "ok", "ok", sigaltstack, N(0), BUFFER)

    /* ── admitted calls with a refused argument ── */
    ROW("read-stdout", "syscall_filter", "EBADF", "EBADF", read, N(1), BUFFER, N(1))
    ROW("read-stderr", "syscall_filter", "EBADF", "EBADF", read, N(2), BUFFER, N(1))
    ROW("read-closed-descriptor", "syscall_filter", "EBADF", "EBADF", read, N(900), BUFFER, N(1))
    ROW("read-descriptor-minus-1", "syscall_filter", "EBADF", "EBADF", read, N(-1), BUFFER, N(1))
    ROW("write-stdin", "syscall_filter", "EBADF", "EBADF", write, N(0), BUFFER, N(1))
    ROW("write-stderr", "syscall_filter", "ok", "ok", write, N(2), BUFFER, N(0))
    ROW("write-closed-descriptor", "syscall_filter", "EBADF", "EBADF", write, N(900), BUFFER, N(1))
    ROW("write-descriptor-high-bit-2", "syscall_filter", "ok", "ok", write, N((1L << 32) | 2), BUFFER, N(0))
    RAW("number-unknown", "syscall_filter", "ENOSYS", "ENOSYS", 1000)
    RAW("number-minus-1", "syscall_filter", "ENOSYS", "ENOSYS", -1)
    RAW("number-largest", "syscall_filter", "ENOSYS", "ENOSYS", 0x7fffffff)
    ACT("number-high-bit", "syscall_filter", "ok|ENOSYS", "ok|ENOSYS", "SIGSYS", act_number_with_high_bit)

#if defined(__x86_64__)
    /* ── x86-64: other ways into the kernel ── */
    ROW("open-legacy", "filesystem_deny", "ok", "EACCES", open, R(PATH_FILE), N(0), N(0))
    ROW("arch-prctl", "syscall_filter", "ok", "ok", arch_prctl, N(0x1003), BUFFER)
    ROW("modify-ldt", "syscall_filter", "ok|ENOSYS", "ok|ENOSYS", modify_ldt, N(0), BUFFER, N(16))
    ROW("iopl", "syscall_filter", "EPERM|ENOSYS", "EPERM|ENOSYS", iopl, N(3))
    ROW("ioperm", "syscall_filter", "EPERM|ENOSYS", "EPERM|ENOSYS", ioperm, N(0x80), N(1), N(1))
    ROW("time", "syscall_filter", "ok", "ok", time, N(0))
    ROW("poll", "syscall_filter", "ok", "ok", poll, N(0), N(0), N(0))
    ROW("prctl-tsc", "syscall_filter", "ok|EINVAL", "ok|EINVAL", prctl, N(25), BUFFER)
    ACT("x32-getpid", "syscall_filter", "ok|ENOSYS", "ok|ENOSYS", "SIGSYS", act_x32_getpid)
    ACT("x32-read-stdin", "syscall_filter", "ok|ENOSYS", "ok|ENOSYS", "SIGSYS", act_x32_read)
    ACT("int80-getpid", "syscall_filter", "ok|SIGSEGV", "ok|SIGSEGV", "SIGSYS|SIGSEGV", act_int80_getpid)
    ACT("vsyscall-time", "syscall_filter", "ok|SIGSEGV", "ok|SIGSEGV", "SIGSYS|SIGSEGV", act_vsyscall_time)
    ACT("vsyscall-getcpu", "syscall_filter", "ok|SIGSEGV", "ok|SIGSEGV", "SIGSYS|SIGSEGV", act_vsyscall_getcpu)
    ACT("instruction-rdpmc", "residual", "SIGSEGV", "SIGSEGV", "SIGSEGV", act_rdpmc)
    ACT("instruction-cli", "residual", "SIGSEGV", "SIGSEGV", "SIGSEGV", act_cli)
    ACT("instruction-in", "residual", "SIGSEGV", "SIGSEGV", "SIGSEGV", act_port_read)
    /* No system call, so no filter: documented residuals. */
    ACT("instruction-rdtsc", "residual", "ok", "ok", "ok", act_rdtsc)
    ACT("instruction-cpuid", "residual", "ok", "ok", "ok", act_cpuid)
#endif

    /* ── what a worker may do ── */
    ALLOWED("admitted-read", "ok", read, N(0), BUFFER, N(0))
    ALLOWED("admitted-read-high-bit", "ok", read, N(1L << 32), BUFFER, N(0))
    ALLOWED("admitted-write", "ok", write, N(1), BUFFER, N(0))
    ALLOWED("admitted-mprotect-write", "ok", mprotect, R(MEMORY_RESERVED), N(1 << 20), N(READ_WRITE))
    ALLOWED("admitted-mprotect-none", "ok", mprotect, R(MEMORY_PAGE), N(4096), N(0))
    ALLOWED("admitted-madvise", "ok", madvise, R(MEMORY_PAGE), N(4096), N(4))
    ALLOWED("admitted-clock", "ok", clock_gettime, N(SYS_CLOCK_THREAD_CPUTIME), BUFFER)
    ALLOWED("admitted-exit", "exit 9", exit_group, N(9))
    ACT("admitted-number-high-bit", "admitted", "ok|ENOSYS", "ok|ENOSYS", "ok|ENOSYS", act_read_with_high_bit)
    ACT("fault-null-write", "admitted", "SIGSEGV", "SIGSEGV", "SIGSEGV", act_null_write)
#if defined(__x86_64__)
    ACT("fault-trap", "admitted", "SIGILL", "SIGILL", "SIGILL", act_trap)
#else
    ACT("fault-trap", "admitted", "SIGTRAP", "SIGTRAP", "SIGTRAP", act_trap)
#endif

    /* ── limits of the launcher: `confined` is to be started under 128 MiB of data and one second of CPU ── */
    ACT("limit-data", "memory_limit", "ok", "ok", "ENOMEM", act_grow_memory)
    ACT("limit-cpu", "cpu_limit", "ok", "ok", "SIGKILL", act_spin)
};

const size_t PROBE_ROW_COUNT = sizeof PROBE_ROWS / sizeof PROBE_ROWS[0];
