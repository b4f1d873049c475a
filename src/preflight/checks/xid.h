#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// What NVIDIA's driver writes to the kernel log: Xid for GPUs, SXid for NVSwitches.
namespace nlaunch::preflight {

/// What must be done after an Xid before the GPU is fit for a run again.
enum class XidAction {
  none,     ///< a program's own fault, or a side effect of another Xid
  watch,    ///< corrected or contained; may be the start of more
  reset,    ///< of the GPU
  reboot,   ///< of the node
  repair,   ///< by hand
  by_line,  ///< the line itself says whether it was fatal
};

/// From NVIDIA's "Xid Errors" (docs.nvidia.com/deploy/xid-errors, the Xid catalog for Ampere and newer,
/// October 2025), reduced to its immediate action. It has none yet for 167 to 172; they are listed here like
/// the codes that they resemble or accompany (158, 48).
struct Xid {
  unsigned code;
  XidAction action;
  std::string_view what;
};
/// All known codes, in order.
std::span<const Xid> xids();
/// Null if the code is not in the table.
const Xid* find_xid(unsigned code);

/// One parsed line of the log.
struct GpuEvent {
  enum class Kind { xid, sxid };
  Kind kind = Kind::xid;
  unsigned code = 0;
  std::string bus_id;  ///< as in the line, without "PCI:": "0009:01:00", "0000:05:00.0"
  std::string text;    ///< the text after the code
};
/// "GPU has fallen off the bus" counts as Xid 79 if the line has no code. Nothing for any other line.
std::optional<GpuEvent> parse_gpu_event(std::string_view line);

/// The action of an event, decided by the line itself if needed; never `by_line`.
XidAction action_of(const GpuEvent& event);

}  // namespace nlaunch::preflight
