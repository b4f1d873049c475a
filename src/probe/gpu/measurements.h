#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

/// Measurements of all GPUs of a node together, by one process that has them all. Both accept `--devices
/// LIST` for CUDA_VISIBLE_DEVICES (in PCI order), and number the GPUs in its order. If nothing can be
/// measured, the object is {"event", "error": text}.
namespace nlaunch::probe {

/// `copies`: copy bandwidth, and whether the data arrives intact:
///   {"event":"copies", "bytes": of each copy between GPUs, "host_bytes": between a GPU and pinned memory
///   near it,
///    "gpus": [{"gpu":0, "bus_id", "name", "host_to_device", "device_to_host" (bytes/s), "wrong": elements
///              that came back from the host changed} or {"gpu", "bus_id", "name", "error": text}],
///    "pairs": [{"from":0, "to":1, "peer": whether each can reach the other's memory,
///               "bandwidth" (bytes/s), "wrong"} or {"from", "to", "error"}]}
/// Bandwidths are medians of three copies. Without peer access a pair's bytes go through the host.
nlohmann::json measure_copies(std::span<const std::string> arguments);

/// `gemm`: `--seconds S` (2) of bf16 matrix products on all GPUs at the same time, with the same numbers:
///   {"event":"gemm", "size": rows and columns,
///    "gpus": [{"gpu":0, "bus_id", "name", "hash": of the first product's bits, "repetitions",
///              "differing": repetitions with a different hash than the first, "first_differing" (if there is
///              one), "wrong_samples": elements of the last product, of 8, that are not a sum of its inputs,
///              "flops": FLOP/s} or {"gpu", "bus_id", "name", "unavailable": text} or {..., "error": text}]}
nlohmann::json measure_gemm(std::span<const std::string> arguments);

}  // namespace nlaunch::probe
