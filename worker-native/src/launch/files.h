/*
 * System calls on files that Node does not offer: one step below an open folder, facts of a handle, changes below a
 * handle. One C API, one file per OS (files_linux.c). Part of the launcher library, the only native code in Node.
 *
 * Called by: packages/native (files.ts), through koffi, for the `fs.*` host functions. What may be reached is decided
 * there; this file only makes sure that each call reaches exactly what it was given.
 * Trust: the descriptors. A name may be a script's: it is one component, which every function checks for itself.
 * Kept true: no call follows a link in a name it is given, except files_open_host and files_resolve, whose paths are
 * the operator's; every descriptor is close-on-exec; nothing waits for a peer (a fifo, a lease, a lock), though a
 * file system that is remote may make any call wait.
 *
 * Functions return a descriptor, a length or 0; negative: -errno. They use no state, so any thread may call them.
 */
#ifndef FLOWCELL_LAUNCH_FILES_H
#define FLOWCELL_LAUNCH_FILES_H

#include <stdint.h>

#define FILES_API __attribute__((visibility("default")))

/* Values of `kind`. */
enum files_kind {
  FILES_OTHER = 0,
  FILES_FILE = 1,
  FILES_FOLDER = 2,
  FILES_LINK = 3,
  FILES_FIFO = 4,
  FILES_SOCKET = 5,
  FILES_DEVICE = 6,
};

struct files_facts {
  uint64_t device; /* with inode: which file it is, for as long as a descriptor of it is open */
  uint64_t inode;
  uint64_t mount;  /* the mount through which it was reached; two mounts can show one device */
  uint64_t size;
  int64_t modified_ns;
  uint64_t kind;
  uint64_t links;
  uint64_t mode; /* permission bits only */
  uint64_t user;
  uint64_t group;
  uint64_t kernel; /* 1: on a file system that is an interface of the kernel (procfs, sysfs, cgroups, …) */
};

/* A handle that can neither read nor write what it is of. `path` is absolute; links in it are followed. */
FILES_API int32_t files_open_host(const char *path);

/* The same for a path below `folder` of any number of components. It says what is there, not that it may be reached. */
FILES_API int32_t files_resolve(int32_t folder, const char *path);

/* A handle of the entry `name` of a folder, of the link itself if it is one. */
FILES_API int32_t files_step(int32_t folder, const char *name);

/* A handle of the folder itself, and of the folder above it. */
FILES_API int32_t files_same(int32_t folder);
FILES_API int32_t files_above(int32_t folder);

/* -ENOSYS where the kernel cannot tell mounts apart (before 5.8). */
FILES_API int32_t files_facts(int32_t handle, struct files_facts *out);

/* The text of a link; no zero byte is added. -ENAMETOOLONG if it does not fit. */
FILES_API int32_t files_link_text(int32_t handle, char *out, uint32_t capacity);

/*
 * 1 if the entry `name` of `folder`, through which the handle was opened, is still that entry of that folder, else 0. A link
 * count of 1 read before this call is then the count of that entry alone: a second name that came and went in between cannot
 * hide, not even while the kernel is removing one.
 */
FILES_API int32_t files_still_named(int32_t handle, int32_t folder, const char *name);

enum files_open_mode {
  FILES_READ = 0,
  FILES_APPEND = 1,
  FILES_WRITE = 2, /* without changing it; answers whether this process may write it */
};

/* A descriptor for data of exactly the regular file that the handle is of. Needs procfs on /proc. */
FILES_API int32_t files_reopen(int32_t handle, int32_t mode);

/* A descriptor of the folder that can be listed and synchronised. */
FILES_API int32_t files_reopen_folder(int32_t handle);

/* A new file, open for appending. -EEXIST whatever else bears the name. */
FILES_API int32_t files_create(int32_t folder, const char *name, uint32_t mode);
FILES_API int32_t files_make_folder(int32_t folder, const char *name);
/* Within one folder. What bore the new name is replaced as an entry; no link is followed. */
FILES_API int32_t files_rename(int32_t folder, const char *from, const char *to);
FILES_API int32_t files_remove(int32_t folder, const char *name);

/*
 * The next entries of a folder opened by files_reopen_folder, 0 at its end. Each is {u8 kind, u8 length, name}, without
 * "." and "..". `capacity` is at least FILES_LIST_MIN; where a file system does not say what an entry is, its kind is
 * asked for.
 */
enum { FILES_LIST_MIN = 4096 };
FILES_API int32_t files_list(int32_t folder, uint8_t *out, uint32_t capacity);

#endif
