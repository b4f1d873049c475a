#pragma once
#include <stddef.h>
#include <stdint.h>

/* What libnlaunch-gloo.so offers: collectives over Gloo on the CPU, behind an interface without C++ types.
   A function that can fail writes the reason to `error` (at most `size` bytes, NUL included). */
#ifdef __cplusplus
extern "C" {
#endif

struct nlaunch_gloo_context;

/* Meets the other ranks through files in `folder` (which exists and is this communicator's own), over TCP on
   the network `interface`, or with this machine's `address` where that is not empty. Null on failure. */
struct nlaunch_gloo_context* nlaunch_gloo_join(const char* folder, const char* interface, const char* address,
                                               int rank, int size, long timeout_ms, char* error,
                                               size_t error_size);
/* In place; 0 when done. */
int nlaunch_gloo_all_reduce(struct nlaunch_gloo_context* context, uint32_t* data, size_t count,
                            long timeout_ms, char* error, size_t error_size);
/* In place, from rank 0; 0 when done. */
int nlaunch_gloo_broadcast(struct nlaunch_gloo_context* context, uint32_t* data, size_t count,
                           long timeout_ms, char* error, size_t error_size);

#ifdef __cplusplus
}
#endif
