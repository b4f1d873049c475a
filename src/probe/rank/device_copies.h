#pragma once
#include <cstdint>

#include "base/diagnostic.h"

namespace nlaunch::probe {

/// A message in GPU memory, and the pinned memory through which it goes if only the CPU can send, as torch
/// does with CUDA tensors over Gloo.
class DeviceCopies {
 public:
  virtual ~DeviceCopies() = default;

  struct Memory {
    std::uint32_t* send = nullptr;
    std::uint32_t* receive = nullptr;
  };
  /// Pinned memory for messages of so many bytes, and as much on the GPU. Replaces what was there before.
  virtual Result<Memory> reserve(std::uint64_t bytes) = 0;
  /// From the GPU to Memory::send; returns when the copy is complete.
  virtual Result<void> to_host(std::uint64_t bytes) = 0;
  /// From Memory::receive to the GPU; returns when the copy is complete.
  virtual Result<void> to_device(std::uint64_t bytes) = 0;
};

}  // namespace nlaunch::probe
