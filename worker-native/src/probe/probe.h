/*
 * The probe: a small program that confines itself with the worker's own objects and then makes one single attempt to
 * get out. This header says what an attempt is; table_linux.c lists them all.
 *
 * Called by the confinement tests and by doctor, through a launcher that gives it three pipe ends. It tries each act
 * in three ways: `control` (unconfined, as the same user: the act must show its natural result, or a refusal proves
 * nothing), `landlock` (the second layer alone, gaps and all), and `confined` (everything).
 */
#ifndef FLOWCELL_PROBE_PROBE_H
#define FLOWCELL_PROBE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum probe_mode { MODE_CONTROL, MODE_LANDLOCK, MODE_CONFINED };

/* Things that an act needs and that must be made before confinement takes the means to make them. */
enum resource {
  FD_FILE,      /* a regular file of ours, open for reading and writing */
  FD_FOLDER,    /* the scratch folder */
  FD_PROGRAM,   /* this binary, open for reading */
  FD_DEVICE,    /* /dev/null */
  FD_TCP,       /* a stream socket, not connected */
  FD_UDP,
  FD_MPTCP,
  FD_UNIX,
  FD_CONNECTED, /* a stream socket that is connected to our own listener */
  FD_SIBLING,   /* a pidfd */
  FD_EPOLL,
  PID_SIBLING, /* a process of the same user outside the confinement */
  PID_SELF,
  PID_PARENT,
  CLOCK_OF_PARENT, /* the clock id of the parent's CPU time */
  PATH_FILE,
  PATH_FOLDER,
  PATH_NEW, /* a name in the scratch folder that does not exist */
  PATH_SOCKET,
  ADDRESS_TCP, /* of our own listener on the loopback interface */
  ADDRESS_ANY, /* loopback, port 0 */
  ADDRESS_UDP,
  ADDRESS_ABSTRACT,
  ADDRESS_PATH,
  MEMORY_PAGE,     /* one readable and writable page */
  MEMORY_RESERVED, /* a gibibyte of addresses without access */
  RESOURCE_COUNT
};

struct probe_arg {
  enum { ARG_NUMBER = 0, ARG_POINTER, ARG_RESOURCE } kind;
  union {
    long number;
    const void *pointer;
    enum resource resource;
  };
};

/* An act that is more than one system call with plain arguments. Returns like a system call. */
typedef long (*probe_act)(void);

/*
 * Expected outcomes are alternatives split by "|": "ok", an error name, a signal name, "executed" or "exit N".
 * `landlock` may be split by the ABI: "ok<3:EACCES" means ok below ABI 3 and EACCES from there on. `proves` is the
 * policy control that the row is evidence for, "admitted" for what a worker may do, "residual" for what nobody denies.
 */
struct probe_row {
  const char *name;
  const char *proves;
  const char *control;
  const char *landlock;
  const char *confined;
  probe_act act;  /* NULL: `number` with `args` */
  bool forks;     /* the call returns a second time, in a child, with 0 */
  long number;
  struct probe_arg args[6];
};

extern const struct probe_row PROBE_ROWS[];
extern const size_t PROBE_ROW_COUNT;

/* Where acts may read and write: zero when the act begins, one page. */
extern uint8_t probe_buffer[4096];

/* Makes a resource (once) and returns its descriptor, number or address; ends the process when that fails. */
long probe_resource(enum resource resource);
/* The folder for files and sockets; must exist and be writable for user 65534. */
void probe_scratch_folder(const char *path);

/* "EACCES" for 13; NULL when the number has no name here. */
const char *probe_errno_name(long number);

/* Acts in acts_linux.c that the table names. */
long act_start_thread(void);
long act_set_allow_all_filter(void);
long act_null_write(void);
long act_trap(void);
long act_call_own_stack(void);
long act_spin(void);
long act_grow_memory(void);
long act_number_with_high_bit(void);
long act_read_with_high_bit(void);
long act_x32_getpid(void);
long act_x32_read(void);
long act_int80_getpid(void);
long act_vsyscall_time(void);
long act_vsyscall_getcpu(void);
long act_rdtsc(void);
long act_cpuid(void);
long act_rdpmc(void);
long act_cli(void);
long act_port_read(void);

#endif
