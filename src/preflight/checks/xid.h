#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// What NVIDIA's driver says in the kernel log: Xid of GPUs, SXid of NVSwitches.
namespace nlaunch::preflight {

/// What has to follow an Xid before the GPU is fit for a run again.
enum class XidAction {
  none,     ///< a program's own fault, or the sign of another Xid
  watch,    ///< corrected or contained; may be the beginning of more
  reset,    ///< of the GPU
  reboot,   ///< of the node
  repair,   ///< by hand
  by_line,  ///< the line itself says whether it was fatal
};

/// Of NVIDIA's "Xid Errors" (docs.nvidia.com/deploy/xid-errors, the Xid catalog for Ampere and newer, October
/// 2025): what its immediate action comes to. It has none yet for 167 to 172, which stand here as the codes
/// that they resemble or accompany (158, 48).
struct Xid {
  unsigned code;
  XidAction action;
  std::string_view what;
};
/// All that are known, by code.
std::span<const Xid> xids();
/// Null where the table has none of that code.
const Xid* find_xid(unsigned code);

/// One line of the log, understood.
struct GpuEvent {
  enum class Kind { xid, sxid };
  Kind kind = Kind::xid;
  unsigned code = 0;
  std::string bus_id;  ///< as the line has it, without "PCI:": "0009:01:00", "0000:05:00.0"
  std::string text;    ///< what follows the code
};
/// "GPU has fallen off the bus" counts as Xid 79 where the line has no code. Nothing for any other line.
std::optional<GpuEvent> parse_gpu_event(std::string_view line);

/// The action of an event, where the line itself decides that too; never `by_line`.
XidAction action_of(const GpuEvent& event);

}  // namespace nlaunch::preflight
