/*
 * What the probe's acts need, made before confinement (probe.h).
 *
 * Each resource is made at its first use. Failing to make one ends the probe with the line "unavailable <errno>" and
 * exit 3: the act was not tried, which a caller must not take for a refusal.
 */
#include "../base/mem.h"
#include "../base/sys.h"
#include "../base/text.h"
#include "probe.h"

enum {
  NOBODY = 65534,
  OPEN_READ_WRITE = 2,
  OPEN_CREATE = 0100,
#if defined(__x86_64__)
  OPEN_DIRECTORY = 0200000,
#else
  OPEN_DIRECTORY = 040000,
#endif
  FAMILY_UNIX = 1,
  FAMILY_INET = 2,
  SOCKET_STREAM = 1,
  SOCKET_DATAGRAM = 2,
  PROTOCOL_MPTCP = 262,
  PATH_BYTES = 128
};

struct address_inet {
  uint16_t family, port;
  uint8_t host[4];
  uint8_t zero[8];
};

struct address_unix {
  uint16_t family;
  char path[108];
};

uint8_t probe_buffer[4096];

static char folder[PATH_BYTES - 16];
static char path_file[PATH_BYTES], path_new[PATH_BYTES], path_socket[PATH_BYTES];
static struct address_inet address_tcp, address_any, address_udp;
static struct address_unix address_abstract, address_path;
static bool made[RESOURCE_COUNT];
static long values[RESOURCE_COUNT];

_Noreturn static void unavailable(long result) {
  char line[64];
  struct text out = text_over(line, sizeof line);
  const char *name = probe_errno_name(-result);
  text_string(&out, "unavailable ");
  if (name != NULL) {
    text_string(&out, name);
  } else {
    text_signed(&out, -result);
  }
  text_string(&out, "\n");
  (void)sys_write(1, line, out.length);
  sys_exit_group(3);
}

static long need(long result) {
  if (result < 0) unavailable(result);
  return result;
}

static void join(char *out, const char *name) {
  struct text path = text_over(out, PATH_BYTES - 1);
  text_string(&path, folder);
  text_string(&path, "/");
  text_string(&path, name);
  if (path.overflow) unavailable(-SYS_EINVAL);
  out[path.length] = '\0';
}

void probe_scratch_folder(const char *path) {
  struct text out = text_over(folder, sizeof folder - 1);
  text_string(&out, path);
  if (out.overflow) unavailable(-SYS_EINVAL);
  folder[out.length] = '\0';
  join(path_file, "file");
  join(path_new, "new");
  join(path_socket, "socket");
}

/* Ours even after root has been given up. */
static long make_file(void) {
  const long fd = need(sys_open(path_file, OPEN_READ_WRITE | OPEN_CREATE, 0600));
  if (sys_call(NR_geteuid, 0, 0, 0, 0, 0, 0) == 0) need(sys_call(NR_fchown, fd, NOBODY, NOBODY, 0, 0, 0));
  need(sys_write((int)fd, "data", 4));
  return fd;
}

static long make_socket(int family, int type, int protocol) {
  return need(sys_call(NR_socket, family, type, protocol, 0, 0, 0));
}

static void loopback(struct address_inet *address, uint16_t port) {
  *address = (struct address_inet){.family = FAMILY_INET, .port = port, .host = {127, 0, 0, 1}};
}

/* A listener that stays open in this process; `length` of its name is that of the whole structure. */
static void make_tcp_listener(void) {
  const long fd = make_socket(FAMILY_INET, SOCKET_STREAM, 0);
  loopback(&address_tcp, 0);
  need(sys_call(NR_bind, fd, sys_pointer(&address_tcp), sizeof address_tcp, 0, 0, 0));
  need(sys_call(NR_listen, fd, 8, 0, 0, 0, 0));
  uint32_t length = sizeof address_tcp;
  need(sys_call(NR_getsockname, fd, sys_pointer(&address_tcp), sys_pointer(&length), 0, 0, 0));
}

static void make_unix_listener(struct address_unix *address, bool abstract) {
  const long fd = make_socket(FAMILY_UNIX, SOCKET_STREAM, 0);
  memset(address, 0, sizeof *address);
  address->family = FAMILY_UNIX;
  if (abstract) {
    /* The whole structure is the name, so the process id makes it unique. */
    struct text name = text_over(address->path + 1, sizeof address->path - 1);
    text_string(&name, "flowcell-probe-");
    text_signed(&name, sys_call(NR_getpid, 0, 0, 0, 0, 0, 0));
  } else {
    memcpy(address->path, path_socket, sizeof address->path < PATH_BYTES ? sizeof address->path : PATH_BYTES);
    address->path[sizeof address->path - 1] = '\0';
    (void)sys_call(NR_unlinkat, SYS_AT_FDCWD, sys_pointer(path_socket), 0, 0, 0, 0);
  }
  need(sys_call(NR_bind, fd, sys_pointer(address), sizeof *address, 0, 0, 0));
  if (!abstract) need(sys_call(NR_fchmodat, SYS_AT_FDCWD, sys_pointer(path_socket), 0777, 0, 0, 0));
  need(sys_call(NR_listen, fd, 8, 0, 0, 0, 0));
}

/*
 * A process of the same user that sleeps, ignores SIGUSR1 and SIGUSR2, can be inspected by its user, and dies with
 * this one. It says through a pipe when it is all that.
 */
static long make_sibling(void) {
  int32_t ready[2];
  need(sys_call(NR_pipe2, sys_pointer(ready), 0, 0, 0, 0, 0));
  const long pid = need(sys_call(NR_clone, 17 /* SIGCHLD */, 0, 0, 0, 0, 0));
  if (pid != 0) {
    (void)sys_close(ready[1]);
    uint8_t byte;
    if (sys_read(ready[0], &byte, 1) != 1) unavailable(-SYS_ESRCH);
    (void)sys_close(ready[0]);
    return pid;
  }
  if (sys_call(NR_geteuid, 0, 0, 0, 0, 0, 0) == 0) {
    (void)sys_call(NR_setgroups, 0, 0, 0, 0, 0, 0);
    (void)sys_call(NR_setresgid, NOBODY, NOBODY, NOBODY, 0, 0, 0);
    (void)sys_call(NR_setresuid, NOBODY, NOBODY, NOBODY, 0, 0, 0);
  }
  (void)sys_prctl(1 /* parent-death signal */, 9, 0, 0, 0);
  (void)sys_prctl(4 /* dumpable */, 1, 0, 0, 0);
  static const struct {
    uintptr_t handler, flags, restorer;
    uint64_t mask;
  } ignore = {1, 0, 0, 0};
  (void)sys_call(NR_rt_sigaction, 10, sys_pointer(&ignore), 0, 8, 0, 0);
  (void)sys_call(NR_rt_sigaction, 12, sys_pointer(&ignore), 0, 8, 0, 0);
  for (int fd = 0; fd < 3; fd++) (void)sys_close(fd);
  (void)sys_write(ready[1], "r", 1);
  (void)sys_close(ready[1]);
  const struct sys_timespec minute = {60, 0};
  (void)sys_call(NR_clock_nanosleep, SYS_CLOCK_MONOTONIC, 0, sys_pointer(&minute), 0, 0, 0);
  sys_exit_group(0);
}

static long make_connected(void) {
  const long fd = make_socket(FAMILY_INET, SOCKET_STREAM, 0);
  (void)probe_resource(ADDRESS_TCP);
  need(sys_call(NR_connect, fd, sys_pointer(&address_tcp), sizeof address_tcp, 0, 0, 0));
  return fd;
}

static long make_memory(size_t length, int protection) {
  const int flags = SYS_MAP_PRIVATE | SYS_MAP_ANONYMOUS | SYS_MAP_NORESERVE;
  return need(sys_mmap(NULL, length, protection, flags, -1, 0));
}

static long make_path_or_address(enum resource resource) {
  switch (resource) {
    case PATH_FILE:
      (void)probe_resource(FD_FILE);
      return sys_pointer(path_file);
    case PATH_FOLDER:
      return sys_pointer(folder);
    case PATH_NEW:
      return sys_pointer(path_new);
    case PATH_SOCKET:
      return sys_pointer(path_socket);
    case ADDRESS_TCP:
      make_tcp_listener();
      return sys_pointer(&address_tcp);
    case ADDRESS_ANY:
      loopback(&address_any, 0);
      return sys_pointer(&address_any);
    case ADDRESS_UDP:
      loopback(&address_udp, 0x0900 /* port 9, big-endian */);
      return sys_pointer(&address_udp);
    case ADDRESS_ABSTRACT:
      make_unix_listener(&address_abstract, true);
      return sys_pointer(&address_abstract);
    case ADDRESS_PATH:
      make_unix_listener(&address_path, false);
      return sys_pointer(&address_path);
    default:
      unavailable(-SYS_EINVAL);
  }
}

static long make(enum resource resource) {
  switch (resource) {
    case FD_FILE:
      return make_file();
    case FD_FOLDER:
      (void)probe_resource(FD_FILE); /* so that there is something in it */
      return need(sys_open(folder, OPEN_DIRECTORY, 0));
    case FD_PROGRAM:
      return need(sys_open("/proc/self/exe", 0, 0));
    case FD_DEVICE:
      return need(sys_open("/dev/null", OPEN_READ_WRITE, 0));
    case FD_TCP:
      return make_socket(FAMILY_INET, SOCKET_STREAM, 0);
    case FD_UDP:
      return make_socket(FAMILY_INET, SOCKET_DATAGRAM, 0);
    case FD_MPTCP:
      return make_socket(FAMILY_INET, SOCKET_STREAM, PROTOCOL_MPTCP);
    case FD_UNIX:
      return make_socket(FAMILY_UNIX, SOCKET_STREAM, 0);
    case FD_CONNECTED:
      return make_connected();
    case FD_SIBLING:
      return need(sys_call(NR_pidfd_open, probe_resource(PID_SIBLING), 0, 0, 0, 0, 0));
    case FD_EPOLL:
      return need(sys_call(NR_epoll_create1, 0, 0, 0, 0, 0, 0));
    case PID_SIBLING:
      return make_sibling();
    case PID_SELF:
      return sys_call(NR_getpid, 0, 0, 0, 0, 0, 0);
    case PID_PARENT:
      return sys_call(NR_getppid, 0, 0, 0, 0, 0, 0);
    case CLOCK_OF_PARENT:
      return (long)(~(uint64_t)probe_resource(PID_PARENT) << 3 | 2);
    case MEMORY_PAGE:
      return make_memory(4096, SYS_PROT_READ | SYS_PROT_WRITE);
    case MEMORY_RESERVED:
      return make_memory((size_t)1 << 30, SYS_PROT_NONE);
    default:
      return make_path_or_address(resource);
  }
}

long probe_resource(enum resource resource) {
  if (!made[resource]) {
    values[resource] = make(resource);
    made[resource] = true;
  }
  return values[resource];
}
