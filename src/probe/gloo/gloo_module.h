#pragma once
#include <stddef.h>
#include <stdint.h>

/* What libnlaunch-gloo.so offers: collectives over Gloo on the CPU, behind an interface without C++ types.
   A function that can fail writes the reason to `error` (at most `size` bytes, NUL included). */
#ifdef __cplusplus
extern "C" {
#endif

struct nlaunch_gloo_context;

/* How the ranks of a communicator find each other. */
struct nlaunch_gloo_mail {
  void* self;
  /* Lets all other ranks have some bytes. */
  void (*give)(void* self, const char* key, const void* data, size_t size);
  /* Waits for those that another rank gives. They are there until the next call; null: they cannot come. */
  const void* (*take)(void* self, const char* key, size_t* size);
};

enum nlaunch_gloo_op {
  NLAUNCH_GLOO_ALL_REDUCE, /* sum */
  NLAUNCH_GLOO_BROADCAST,  /* from rank 0 */
  NLAUNCH_GLOO_ALL_GATHER, /* each rank sends its share of `count` */
  NLAUNCH_GLOO_SEND_RECV   /* to the next rank, from the one before */
};

/* Meets the other ranks by mail, and talks over TCP on the network `interface`, or with this machine's
   `address` where that is not empty. Null on failure. */
struct nlaunch_gloo_context* nlaunch_gloo_join(const struct nlaunch_gloo_mail* mail, const char* interface,
                                               const char* address, int rank, int size, long timeout_ms,
                                               char* error, size_t error_size);
/* `count`: elements that a rank receives. 0 when done. */
int nlaunch_gloo_run(struct nlaunch_gloo_context* context, enum nlaunch_gloo_op op, uint32_t* send,
                     uint32_t* receive, size_t count, long timeout_ms, char* error, size_t error_size);

#ifdef __cplusplus
}
#endif
