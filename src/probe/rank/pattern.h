#pragma once
#include <stdint.h>

/// The numbers that a preflight sends: every element differs from its neighbours, and a sum of all ranks'
/// terms shows which term is missing. Unsigned arithmetic modulo 2^32 on the host and on the GPU; NCCL's and
/// Gloo's 32-bit sums wrap in the same way. Compiled as C++ and as CUDA.
#ifdef __CUDACC__
#define NLAUNCH_ANYWHERE __host__ __device__
#else
#define NLAUNCH_ANYWHERE
#endif

namespace nlaunch::probe {

/// An odd number for element `i`; odd, so that its multiples by different ranks differ.
NLAUNCH_ANYWHERE constexpr uint32_t element_seed(uint64_t i) {
  uint64_t x = (i + 1) * 0x9E3779B97F4A7C15ULL;
  x ^= x >> 29U;
  x *= 0xBF58476D1CE4E5B9ULL;
  return static_cast<uint32_t>(x >> 32U) | 1U;
}

/// What rank `rank` sends as element `i`.
NLAUNCH_ANYWHERE constexpr uint32_t term(uint32_t rank, uint64_t i) {
  return element_seed(i) * (rank + 1U);
}

/// What every rank must find: `weight` is `sum_weight(ranks)` after an all-reduce, 1 after a broadcast from
/// rank 0.
NLAUNCH_ANYWHERE constexpr uint32_t expected_element(uint32_t weight, uint64_t i) {
  return element_seed(i) * weight;
}

constexpr uint32_t sum_weight(uint32_t ranks) {
  return static_cast<uint32_t>(uint64_t{ranks} * (uint64_t{ranks} + 1) / 2);
}

/// The rank whose term alone is `difference`; -1 if no single rank's is.
constexpr int rank_of_term(uint32_t ranks, uint64_t i, uint32_t difference) {
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (difference == term(rank, i)) return static_cast<int>(rank);
  }
  return -1;
}

}  // namespace nlaunch::probe
