/* Names of the error numbers that probes meet (probe.h); equal on both architectures. */
#include "probe.h"

const char *probe_errno_name(long number) {
  static const struct {
    long number;
    const char *name;
  } names[] = {
      {1, "EPERM"},          {2, "ENOENT"},          {3, "ESRCH"},         {4, "EINTR"},
      {5, "EIO"},            {6, "ENXIO"},           {7, "E2BIG"},         {8, "ENOEXEC"},
      {9, "EBADF"},          {10, "ECHILD"},         {11, "EAGAIN"},       {12, "ENOMEM"},
      {13, "EACCES"},        {14, "EFAULT"},         {15, "ENOTBLK"},      {16, "EBUSY"},
      {17, "EEXIST"},        {18, "EXDEV"},          {19, "ENODEV"},       {20, "ENOTDIR"},
      {21, "EISDIR"},        {22, "EINVAL"},         {23, "ENFILE"},       {24, "EMFILE"},
      {25, "ENOTTY"},        {26, "ETXTBSY"},        {27, "EFBIG"},        {28, "ENOSPC"},
      {29, "ESPIPE"},        {30, "EROFS"},          {31, "EMLINK"},       {32, "EPIPE"},
      {34, "ERANGE"},        {38, "ENOSYS"},         {40, "ELOOP"},        {61, "ENODATA"},
      {75, "EOVERFLOW"},     {88, "ENOTSOCK"},       {92, "ENOPROTOOPT"},  {93, "EPROTONOSUPPORT"},
      {95, "EOPNOTSUPP"},    {97, "EAFNOSUPPORT"},   {98, "EADDRINUSE"},   {99, "EADDRNOTAVAIL"},
      {101, "ENETUNREACH"},  {103, "ECONNABORTED"},  {104, "ECONNRESET"},  {106, "EISCONN"},
      {107, "ENOTCONN"},     {110, "ETIMEDOUT"},     {111, "ECONNREFUSED"}, {113, "EHOSTUNREACH"},
      {115, "EINPROGRESS"},  {126, "ENOKEY"},        {128, "EKEYREVOKED"}, {129, "EKEYREJECTED"}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (names[i].number == number) return names[i].name;
  }
  return NULL;
}
