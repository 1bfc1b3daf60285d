/*
 * The file calls by themselves: what each refuses of a name, that lists hold every entry, that nothing waits for a fifo,
 * that a name which came and went is noticed. Works in a folder of its own below $TMPDIR or /tmp.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/files.h"

#define REQUIRE(condition)                                                         \
  do {                                                                             \
    if (!(condition)) {                                                            \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);    \
      exit(1);                                                                     \
    }                                                                              \
  } while (0)

enum { ENTRIES = 300, LONGEST = 255 };

static char ground[4096];
static int32_t folder;

static struct files_facts facts_of(int32_t handle) {
  struct files_facts facts;
  REQUIRE(files_facts(handle, &facts) == 0);
  return facts;
}

static void make(const char *name) {
  int32_t file = files_create(folder, name, 0600);
  REQUIRE(file >= 0);
  REQUIRE(close(file) == 0);
}

static void names_are_one_component(void) {
  char too_long[LONGEST + 2];
  memset(too_long, 'n', LONGEST + 1);
  too_long[LONGEST + 1] = '\0';
  const char *const refused[] = {"", ".", "..", "/", "a/b", "/a", "a/", "../a", too_long};
  for (size_t at = 0; at < sizeof refused / sizeof refused[0]; at++) {
    REQUIRE(files_step(folder, refused[at]) == -EINVAL);
    REQUIRE(files_create(folder, refused[at], 0600) == -EINVAL);
    REQUIRE(files_make_folder(folder, refused[at]) == -EINVAL);
    REQUIRE(files_remove(folder, refused[at]) == -EINVAL);
    REQUIRE(files_rename(folder, refused[at], "b") == -EINVAL);
    REQUIRE(files_rename(folder, "b", refused[at]) == -EINVAL);
    REQUIRE(files_still_named(folder, folder, refused[at]) == -EINVAL);
  }
  too_long[LONGEST] = '\0';
  make(too_long);
  REQUIRE(files_remove(folder, too_long) == 0);
  make("...");
  REQUIRE(files_remove(folder, "...") == 0);
  REQUIRE(files_open_host("relative") == -EINVAL);
  REQUIRE(files_resolve(folder, "/absolute") == -EINVAL);
}

static void lists_hold_every_entry_once(void) {
  REQUIRE(files_make_folder(folder, "many") == 0);
  int32_t many = files_step(folder, "many");
  char name[LONGEST + 1];
  for (int at = 0; at < ENTRIES; at++) {
    /* Every second name is as long as names may be: its number, then n. */
    memset(name, 'n', LONGEST);
    name[LONGEST] = '\0';
    (void)snprintf(name, sizeof name, "%d", at);
    if (at % 2 == 0) name[strlen(name)] = 'n';
    int32_t file = files_create(many, name, 0600);
    REQUIRE(file >= 0);
    (void)close(file);
  }
  int32_t list = files_reopen_folder(many);
  /* On the heap, so that a sanitizer sees a byte written behind it. */
  uint8_t *out = malloc(FILES_LIST_MIN);
  REQUIRE(out != NULL);
  bool seen[ENTRIES] = {false};
  int count = 0;
  REQUIRE(files_list(list, out, FILES_LIST_MIN - 1) == -EINVAL);
  for (;;) {
    int32_t length = files_list(list, out, FILES_LIST_MIN);
    REQUIRE(length >= 0 && length <= FILES_LIST_MIN);
    if (length == 0) break;
    for (int32_t at = 0; at < length; at += 2 + out[at + 1]) {
      REQUIRE(out[at] == FILES_FILE);
      int number = atoi((const char *)out + at + 2);
      REQUIRE(number >= 0 && number < ENTRIES && !seen[number]);
      seen[number] = true;
      count++;
    }
  }
  REQUIRE(count == ENTRIES);
  free(out);
  (void)close(list);
  (void)close(many);
}

static void a_fifo_is_known_and_never_opened(void) {
  REQUIRE(mkfifoat(folder, "fifo", 0600) == 0);
  int32_t fifo = files_step(folder, "fifo");
  REQUIRE(facts_of(fifo).kind == FILES_FIFO);
  for (int mode = FILES_READ; mode <= FILES_WRITE; mode++) REQUIRE(files_reopen(fifo, mode) == -EINVAL);
  REQUIRE(files_reopen(folder, FILES_READ) == -EINVAL);
  (void)close(fifo);
}

static void a_handle_outlives_its_name(void) {
  make("a");
  int32_t handle = files_step(folder, "a");
  REQUIRE(files_still_named(handle, folder, "a") == 1);
  REQUIRE(files_still_named(handle, folder, "b") == 0);
  int32_t below = files_make_folder(folder, "below") == 0 ? files_step(folder, "below") : -1;
  REQUIRE(below >= 0 && files_still_named(handle, below, "a") == 0);
  REQUIRE(renameat(folder, "a", below, "a") == 0);
  REQUIRE(files_still_named(handle, folder, "a") == 0 && files_still_named(handle, below, "a") == 1);
  REQUIRE(renameat(below, "a", folder, "a") == 0);
  REQUIRE(files_still_named(handle, folder, "a") == 1);
  REQUIRE(unlinkat(folder, "below", AT_REMOVEDIR) == 0);
  (void)close(below);
  REQUIRE(linkat(folder, "a", folder, "b", 0) == 0);
  REQUIRE(facts_of(handle).links == 2 && files_still_named(handle, folder, "a") == 1);
  REQUIRE(files_remove(folder, "a") == 0);
  REQUIRE(facts_of(handle).links == 1 && files_still_named(handle, folder, "a") == 0);
  REQUIRE(linkat(folder, "b", folder, "a", 0) == 0);
  REQUIRE(files_still_named(handle, folder, "a") == 0);
  REQUIRE(files_create(folder, "a", 0600) == -EEXIST);
  int32_t data = files_reopen(handle, FILES_READ);
  REQUIRE(data >= 0 && (fcntl(data, F_GETFD) & FD_CLOEXEC) != 0);
  REQUIRE(facts_of(data).inode == facts_of(handle).inode);
  (void)close(data);
  (void)close(handle);
}

static void links_are_handles_of_themselves(void) {
  REQUIRE(symlinkat("../target", folder, "link") == 0);
  int32_t link = files_step(folder, "link");
  REQUIRE(facts_of(link).kind == FILES_LINK);
  char text[16];
  REQUIRE(files_link_text(link, text, sizeof text) == 9 && memcmp(text, "../target", 9) == 0);
  REQUIRE(files_link_text(link, text, 9) == -ENAMETOOLONG);
  REQUIRE(files_reopen(link, FILES_READ) == -EINVAL);
  REQUIRE(files_step(link, "x") == -ENOTDIR);
  REQUIRE(files_create(folder, "link", 0600) == -EEXIST);
  (void)close(link);
}

static void mounts_and_kernel_file_systems_are_told_apart(void) {
  int32_t proc = files_open_host("/proc/self");
  struct files_facts here = facts_of(folder);
  struct files_facts there = facts_of(proc);
  REQUIRE(there.kernel == 1 && here.kernel == 0 && there.mount != here.mount);
  int32_t same = files_same(folder);
  REQUIRE(facts_of(same).mount == here.mount && facts_of(same).inode == here.inode);
  int32_t above = files_above(folder);
  REQUIRE(facts_of(above).kind == FILES_FOLDER && facts_of(above).inode != here.inode);
  (void)close(above);
  (void)close(same);
  (void)close(proc);
}

int main(void) {
  const char *parent = getenv("TMPDIR");
  (void)snprintf(ground, sizeof ground, "%s/flowcell-files-XXXXXX", parent == NULL ? "/tmp" : parent);
  REQUIRE(mkdtemp(ground) != NULL);
  folder = files_open_host(ground);
  REQUIRE(folder >= 0);
  names_are_one_component();
  lists_hold_every_entry_once();
  a_fifo_is_known_and_never_opened();
  a_handle_outlives_its_name();
  links_are_handles_of_themselves();
  mounts_and_kernel_file_systems_are_told_apart();
  (void)close(folder);
  char command[4200];
  (void)snprintf(command, sizeof command, "rm -rf '%s'", ground);
  return system(command) == 0 ? 0 : 1;
}
