/*
 * Files on Linux. See files.h for what is kept true.
 *
 * Handles are O_PATH descriptors: opening one has no effect on a device or a fifo and needs no permission on the file
 * itself. Data descriptors are made from handles by way of /proc/self/fd, which opens the very inode of the handle
 * whatever has happened to its name since, and only after the handle was seen to be a regular file.
 */
#define _GNU_SOURCE
#include "launch/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Kernel numbers that older headers lack. */
#ifndef SYS_statx
#if defined(__x86_64__)
#define SYS_statx 332
#else
#define SYS_statx 291
#endif
#endif

enum {
  FILES_NAME_MAX = 255,
  FILES_STATX_BASIC = 0x7ff,
  FILES_STATX_MOUNT = 0x1000,
  FILES_AT_NO_AUTOMOUNT = 0x800,
  FILES_AT_EMPTY_PATH = 0x1000,
};

/* The kernel's struct statx; the C libraries' know different parts of it. */
struct kernel_statx {
  uint32_t mask, block_bytes;
  uint64_t attributes;
  uint32_t links, user, group;
  uint16_t mode, spare;
  uint64_t inode, size, blocks, attributes_mask;
  struct kernel_statx_time {
    int64_t seconds;
    uint32_t nanoseconds;
    int32_t reserved;
  } accessed, born, changed, modified;
  uint32_t special_major, special_minor, major, minor;
  uint64_t mount;
  uint64_t rest[13];
};
_Static_assert(sizeof(struct kernel_statx) == 256, "the kernel's struct statx has 256 bytes");
_Static_assert(offsetof(struct kernel_statx, mount) == 144, "and the mount at byte 144");

/*
 * File systems whose files are conversations with the kernel or with a daemon. The magic numbers without a name in
 * linux/magic.h are those of fs/configfs, ipc/mqueue, fs/fuse/control, net/sunrpc/rpc_pipe, fs/nfsd and drivers/xen.
 */
static const uint32_t kernel_file_systems[] = {
    PROC_SUPER_MAGIC,  SYSFS_MAGIC,        DEBUGFS_MAGIC, TRACEFS_MAGIC,       SECURITYFS_MAGIC, SELINUX_MAGIC,
    SMACK_MAGIC,       CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,  PSTOREFS_MAGIC,   EFIVARFS_MAGIC,
    DEVPTS_SUPER_MAGIC, NSFS_MAGIC,        BINFMTFS_MAGIC, AUTOFS_SUPER_MAGIC, AAFS_MAGIC,       RDTGROUP_SUPER_MAGIC,
    0x62656570,        0x19800202,         0x65735543,    0x67596969,          0x6e667364,       0xabba1974,
};

static int32_t answer(long result) {
  return result < 0 ? -errno : (int32_t)result;
}

/* One component that is neither a way up nor the folder itself. */
static bool is_name(const char *name) {
  if (name == NULL) return false;
  size_t length = strnlen(name, FILES_NAME_MAX + 1);
  if (length == 0 || length > FILES_NAME_MAX || memchr(name, '/', length) != NULL) return false;
  return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

int32_t files_open_host(const char *path) {
  if (path == NULL || path[0] != '/') return -EINVAL;
  return answer(open(path, O_PATH | O_CLOEXEC));
}

int32_t files_resolve(int32_t folder, const char *path) {
  if (path == NULL || path[0] == '/') return -EINVAL;
  return answer(openat(folder, path[0] == '\0' ? "." : path, O_PATH | O_CLOEXEC));
}

int32_t files_step(int32_t folder, const char *name) {
  if (!is_name(name)) return -EINVAL;
  return answer(openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

int32_t files_same(int32_t folder) {
  return answer(openat(folder, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

int32_t files_above(int32_t folder) {
  return answer(openat(folder, "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

static enum files_kind kind_of_mode(uint16_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return FILES_FILE;
    case S_IFDIR:
      return FILES_FOLDER;
    case S_IFLNK:
      return FILES_LINK;
    case S_IFIFO:
      return FILES_FIFO;
    case S_IFSOCK:
      return FILES_SOCKET;
    case S_IFCHR:
    case S_IFBLK:
      return FILES_DEVICE;
    default:
      return FILES_OTHER;
  }
}

/* 1, 0 or -errno. */
static int32_t is_kernel_file_system(int32_t handle) {
  struct statfs system;
  if (fstatfs(handle, &system) != 0) return -errno;
  /* f_type is wider than the magic numbers and on some architectures signed. */
  const uint32_t magic = (uint32_t)system.f_type;
  for (size_t at = 0; at < sizeof kernel_file_systems / sizeof kernel_file_systems[0]; at++) {
    if (kernel_file_systems[at] == magic) return 1;
  }
  return 0;
}

static int32_t stat_handle(int32_t handle, struct kernel_statx *out) {
  const long flags = FILES_AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | FILES_AT_NO_AUTOMOUNT;
  if (syscall(SYS_statx, handle, "", flags, FILES_STATX_BASIC | FILES_STATX_MOUNT, out) != 0) return -errno;
  return (out->mask & FILES_STATX_MOUNT) != 0 ? 0 : -ENOSYS;
}

int32_t files_facts(int32_t handle, struct files_facts *out) {
  struct kernel_statx status;
  int32_t result = stat_handle(handle, &status);
  if (result < 0) return result;
  const int32_t kernel = is_kernel_file_system(handle);
  if (kernel < 0) return kernel;
  *out = (struct files_facts){
      .device = (uint64_t)status.major << 32 | status.minor,
      .inode = status.inode,
      .mount = status.mount,
      .size = status.size,
      .modified_ns = status.modified.seconds * 1000000000LL + status.modified.nanoseconds,
      .kind = kind_of_mode(status.mode),
      .links = status.links,
      .mode = status.mode & 0777,
      .user = status.user,
      .group = status.group,
      .kernel = (uint64_t)kernel,
  };
  return 0;
}

int32_t files_link_text(int32_t handle, char *out, uint32_t capacity) {
  const ssize_t length = readlinkat(handle, "", out, capacity);
  if (length < 0) return -errno;
  return (uint32_t)length < capacity ? (int32_t)length : -ENAMETOOLONG;
}

/* /proc/self/fd as a handle, which must be a procfs: another file system could lead anywhere. */
static int32_t open_descriptor_list(void) {
  const int list = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (list < 0) return -errno;
  struct statfs system;
  if (fstatfs(list, &system) == 0 && (uint32_t)system.f_type == PROC_SUPER_MAGIC) return list;
  (void)close(list);
  return -ENOSYS;
}

/* The kernel's text for a descriptor: the path of the entry that it was opened through. Its length, or a negative error. */
static ssize_t descriptor_text(int32_t list, int32_t descriptor, char *out, size_t capacity) {
  char number[16];
  (void)snprintf(number, sizeof number, "%d", descriptor);
  const ssize_t length = readlinkat(list, number, out, capacity);
  if (length < 0) return -errno;
  return (size_t)length < capacity ? length : -ENAMETOOLONG;
}

/*
 * Returns when every change of the folder's entries that had begun is over. A removal lowers the file's link count before
 * the kernel drops the entry, both under the folder's lock; looking a name up that nobody has looked up takes that lock.
 * The name is random, since one that is expected could be answered without it. 0 or a negative error.
 */
static int32_t wait_for_changes(int32_t folder) {
  uint64_t chance[2];
  if (getrandom(chance, sizeof chance, 0) != (ssize_t)sizeof chance) return -EIO;
  char name[48];
  (void)snprintf(name, sizeof name, ".%016llx%016llx", (unsigned long long)chance[0], (unsigned long long)chance[1]);
  struct stat status;
  if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0) return -EEXIST;
  return errno == ENOENT ? 0 : -errno;
}

/*
 * The kernel's text for a handle is the path of the directory entry it was opened through. An entry that was removed is
 * never put back, even when a new one of the same name is made: its text then ends with " (deleted)". One that was moved
 * elsewhere has another folder's path; there the wait above would be of no use.
 */
int32_t files_still_named(int32_t handle, int32_t folder, const char *name) {
  if (!is_name(name)) return -EINVAL;
  const int32_t waited = wait_for_changes(folder);
  if (waited < 0) return waited;
  const int32_t list = open_descriptor_list();
  if (list < 0) return list;
  char above[4097];
  char text[4097];
  const ssize_t above_length = descriptor_text(list, folder, above, sizeof above);
  const ssize_t length = descriptor_text(list, handle, text, sizeof text);
  (void)close(list);
  if (above_length < 0 || length < 0) {
    const ssize_t error = above_length < 0 ? above_length : length;
    return error == -ENAMETOOLONG ? 0 : (int32_t)error;
  }
  /* The root's own path ends with the slash. */
  const size_t prefix = above_length == 1 ? 0 : (size_t)above_length;
  const size_t name_length = strlen(name);
  if ((size_t)length != prefix + 1 + name_length) return 0;
  return memcmp(text, above, prefix) == 0 && text[prefix] == '/' && memcmp(text + prefix + 1, name, name_length) == 0;
}

int32_t files_reopen(int32_t handle, int32_t mode) {
  static const int flags[] = {[FILES_READ] = O_RDONLY, [FILES_APPEND] = O_WRONLY | O_APPEND, [FILES_WRITE] = O_WRONLY};
  if (mode < FILES_READ || mode > FILES_WRITE) return -EINVAL;
  struct kernel_statx status;
  int32_t result = stat_handle(handle, &status);
  if (result < 0) return result;
  if (kind_of_mode(status.mode) != FILES_FILE) return -EINVAL;
  const int32_t list = open_descriptor_list();
  if (list < 0) return list;
  char number[16];
  (void)snprintf(number, sizeof number, "%d", handle);
  /* O_NONBLOCK: a lease that another process holds fails the call, it does not delay it. */
  result = answer(openat(list, number, flags[mode] | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  (void)close(list);
  return result;
}

int32_t files_reopen_folder(int32_t handle) {
  return answer(openat(handle, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

int32_t files_create(int32_t folder, const char *name, uint32_t mode) {
  if (!is_name(name)) return -EINVAL;
  const int flags = O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC;
  return answer(openat(folder, name, flags, (mode_t)(mode & 0777)));
}

int32_t files_make_folder(int32_t folder, const char *name) {
  if (!is_name(name)) return -EINVAL;
  return answer(mkdirat(folder, name, 0777));
}

int32_t files_rename(int32_t folder, const char *from, const char *to) {
  if (!is_name(from) || !is_name(to)) return -EINVAL;
  return answer(renameat(folder, from, folder, to));
}

int32_t files_remove(int32_t folder, const char *name) {
  if (!is_name(name)) return -EINVAL;
  return answer(unlinkat(folder, name, 0));
}

static enum files_kind kind_of_entry(int32_t folder, const char *name, uint8_t type) {
  if (type != 0) return kind_of_mode((uint16_t)(type << 12)); /* DTTOIF */
  struct stat status;
  if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return FILES_OTHER;
  return kind_of_mode((uint16_t)status.st_mode);
}

/* An entry is never longer here than in the kernel's list, whose entries have a head of 19 bytes. */
int32_t files_list(int32_t folder, uint8_t *out, uint32_t capacity) {
  _Alignas(8) uint8_t list[FILES_LIST_MIN];
  if (capacity < sizeof list) return -EINVAL;
  for (;;) {
    const long length = syscall(SYS_getdents64, folder, list, sizeof list);
    if (length <= 0) return answer(length);
    uint32_t used = 0;
    /* linux_dirent64: u64 inode, s64 offset, u16 length, u8 type, name. */
    for (long at = 0; at < length;) {
      uint16_t entry_length;
      memcpy(&entry_length, list + at + 16, sizeof entry_length);
      const char *name = (const char *)list + at + 19;
      if (is_name(name)) {
        const size_t name_length = strlen(name);
        out[used] = (uint8_t)kind_of_entry(folder, name, list[at + 18]);
        out[used + 1] = (uint8_t)name_length;
        memcpy(out + used + 2, name, name_length);
        used += 2 + (uint32_t)name_length;
      }
      at += entry_length;
    }
    /* A list of nothing but "." and ".." is not the end. */
    if (used > 0) return (int32_t)used;
  }
}
