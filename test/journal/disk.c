/*
 * A disk that a test can slow down or break, preloaded into a process that owns a store. When the file named by
 * FLOWCELL_TEST_DISK is there, its first byte says what the next call on a store's file does, once; then the file is removed
 * and the disk works again: 's' the flush takes a second and a half, 'e' the flush fails with EIO, 'w' the write fails with
 * ENOSPC. Other files are left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static int is_store(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return strstr(path, "store.db") != NULL;
}

/* The order that waits, if it is one of those that this call takes; it is taken by removing its file. */
static char order(int fd, const char *taken) {
  const char *path = getenv("FLOWCELL_TEST_DISK");
  if (path == NULL || !is_store(fd)) return 0;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char what = 0;
  ssize_t got = read(file, &what, 1);
  close(file);
  if (got != 1 || strchr(taken, what) == NULL) return 0;
  return unlink(path) == 0 ? what : 0;
}

static int flush(int fd, const char *name) {
  char what = order(fd, "se");
  if (what == 's') {
    struct timespec pause = {1, 500000000};
    nanosleep(&pause, NULL);
  }
  if (what == 'e') {
    errno = EIO;
    return -1;
  }
  int (*real)(int);
  *(void **)&real = dlsym(RTLD_NEXT, name);
  return real(fd);
}

int fsync(int fd) { return flush(fd, "fsync"); }
int fdatasync(int fd) { return flush(fd, "fdatasync"); }

static ssize_t put(int fd, const void *bytes, size_t length, off_t at, const char *name) {
  if (order(fd, "w") == 'w') {
    errno = ENOSPC;
    return -1;
  }
  ssize_t (*real)(int, const void *, size_t, off_t);
  *(void **)&real = dlsym(RTLD_NEXT, name);
  return real(fd, bytes, length, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) { return put(fd, bytes, length, at, "pwrite"); }
ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t at) { return put(fd, bytes, length, at, "pwrite64"); }
