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

/* Meets the other ranks by mail, and talks over TCP on the network `interface`, or with this machine's
   `address` where that is not empty. Null on failure. */
struct nlaunch_gloo_context* nlaunch_gloo_join(const struct nlaunch_gloo_mail* mail, const char* interface,
                                               const char* address, int rank, int size, long timeout_ms,
                                               char* error, size_t error_size);
/* In place; 0 when done. */
int nlaunch_gloo_all_reduce(struct nlaunch_gloo_context* context, uint32_t* data, size_t count,
                            long timeout_ms, char* error, size_t error_size);
/* In place, from rank 0; 0 when done. */
int nlaunch_gloo_broadcast(struct nlaunch_gloo_context* context, uint32_t* data, size_t count,
                           long timeout_ms, char* error, size_t error_size);

#ifdef __cplusplus
}
#endif
