#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/collective.h"
#include "base/words.h"

namespace nlaunch {

/// In what the libraries differ that ranks talk through. Whoever must decide by the backend asks for the
/// property that the decision is about: a new backend is a row of the table, and its half of the probe.
struct BackendTraits {
  Backend backend;
  std::string_view name;   ///< as files have it: "nccl"
  std::string_view title;  ///< as sentences have it: "NCCL"
  /// A rank is a GPU, and the probe's GPU half rehearses it. Else a rank may be a CPU slot, too.
  bool needs_gpu;
  /// Each rank's program loads it, and all ranks of a group need the same version: "libnccl". Empty: nothing
  /// of the kind.
  std::string_view library;
  /// Its times are those of the links, and can be held against expectations and other nodes. Else they are
  /// those of processors that do other things as well.
  bool steady_times;
  /// Operations go onto CUDA streams and into CUDA graphs.
  bool has_streams;
  /// Its log says over what the ranks talk.
  bool logs_transport;
  std::uint64_t largest_message;  ///< bytes, of those that preflight times
  std::uint64_t drill_message;    ///< bytes; large enough that a rank is still at it when the next one comes
  std::optional<Collective> lacks;
  std::string_view remedy;  ///< what to look at where ranks arrived and an operation did not end
};

const BackendTraits& traits_of(Backend backend);
/// All, in the order in which messages list them.
std::span<const BackendTraits> all_backends();
/// What learners use for collectives of their own: on GPUs, or on CPU slots.
Backend usual_backend(bool on_gpus);

}  // namespace nlaunch
