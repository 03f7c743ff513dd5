/*
 * Interrupts a program at one of its changes of files: LD_PRELOAD=faulty-writes.so. The settings are environment variables:
 *
 * FAULTY_WRITES_DIR   the folder whose files count
 * FAULTY_WRITES_AT    the number of the change, from 1
 * FAULTY_WRITES_KIND  KILL ends the program after half of the change, ENOSPC lets this and every later change that needs space
 *                     fail, and EIO lets this change fail
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long changes;

static int is_below(const char *path) {
  const char *folder = getenv("FAULTY_WRITES_DIR");
  return folder != NULL && path != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_ours(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = '\0';
  return is_below(path);
}

enum fault { NONE, KILL, FAIL };

/* Counts a change and returns its fault. Sets errno for one that fails. */
static enum fault next(int needs_space) {
  const char *at = getenv("FAULTY_WRITES_AT"), *kind = getenv("FAULTY_WRITES_KIND");
  if (at == NULL || kind == NULL) return NONE;
  long number = atomic_fetch_add(&changes, 1) + 1, first = atol(at);
  if (strcmp(kind, "KILL") == 0) return number == first ? KILL : NONE;
  if (strcmp(kind, "EIO") == 0) return number == first ? (errno = EIO, FAIL) : NONE;
  return number >= first && needs_space ? (errno = ENOSPC, FAIL) : NONE;
}

static void end(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* A killed write leaves its first half. */
#define WRITE(name, type, parameters, whole, half)  \
  type name parameters {                            \
    if (is_ours(fd)) switch (next(1)) {             \
      case KILL: half; end();                       \
      case FAIL: return -1;                         \
      case NONE: break;                             \
    }                                               \
    return whole;                                   \
  }

/* A killed change happens or not, by the parity of its number. */
#define CHANGE(name, parameters, is_counted, needs_space, whole)      \
  int name parameters {                                               \
    if (is_counted) switch (next(needs_space)) {                      \
      case KILL: if (atomic_load(&changes) % 2 == 0) whole; end();    \
      case FAIL: return -1;                                           \
      case NONE: break;                                               \
    }                                                                 \
    return whole;                                                     \
  }

WRITE(write, ssize_t, (int fd, const void *data, size_t size), REAL(write)(fd, data, size), REAL(write)(fd, data, size / 2))
WRITE(pwrite, ssize_t, (int fd, const void *data, size_t size, off_t at), REAL(pwrite)(fd, data, size, at),
      REAL(pwrite)(fd, data, size / 2, at))
WRITE(pwrite64, ssize_t, (int fd, const void *data, size_t size, off64_t at), REAL(pwrite64)(fd, data, size, at),
      REAL(pwrite64)(fd, data, size / 2, at))
WRITE(writev, ssize_t, (int fd, const struct iovec *parts, int count), REAL(writev)(fd, parts, count),
      REAL(writev)(fd, parts, count / 2))
WRITE(pwritev, ssize_t, (int fd, const struct iovec *parts, int count, off_t at), REAL(pwritev)(fd, parts, count, at),
      REAL(pwritev)(fd, parts, count / 2, at))

CHANGE(fsync, (int fd), is_ours(fd), 0, REAL(fsync)(fd))
CHANGE(fdatasync, (int fd), is_ours(fd), 0, REAL(fdatasync)(fd))
CHANGE(ftruncate, (int fd, off_t size), is_ours(fd), 0, REAL(ftruncate)(fd, size))
CHANGE(ftruncate64, (int fd, off64_t size), is_ours(fd), 0, REAL(ftruncate64)(fd, size))
CHANGE(rename, (const char *from, const char *to), is_below(to), 1, REAL(rename)(from, to))
CHANGE(link, (const char *from, const char *to), is_below(to), 1, REAL(link)(from, to))
CHANGE(unlink, (const char *path), is_below(path), 0, REAL(unlink)(path))
CHANGE(mkdir, (const char *path, mode_t mode), is_below(path), 1, REAL(mkdir)(path, mode))

#define OPEN(name)                                                                           \
  int name(const char *path, int flags, ...) {                                               \
    mode_t mode = 0;                                                                         \
    if (flags & O_CREAT) {                                                                   \
      va_list rest;                                                                          \
      va_start(rest, flags);                                                                 \
      mode = va_arg(rest, mode_t);                                                           \
      va_end(rest);                                                                          \
      if (is_below(path) && access(path, F_OK) != 0) switch (next(1)) {                      \
        case KILL: if (atomic_load(&changes) % 2 == 0) REAL(name)(path, flags, mode); end(); \
        case FAIL: return -1;                                                                \
        case NONE: break;                                                                    \
      }                                                                                      \
    }                                                                                        \
    return REAL(name)(path, flags, mode);                                                    \
  }

OPEN(open)
OPEN(open64)
