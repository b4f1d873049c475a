#include "preflight/checks/xid.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace nlaunch::preflight {
namespace {

using enum XidAction;

constexpr Xid kXids[] = {
    {8, none, "the GPU stopped processing for a program"},
    {11, none, "a program sent a corrupt stream of commands"},
    {13, none, "a program's kernel raised an exception"},
    {25, none, "a program sent an illegal stream of commands"},
    {31, none, "a program accessed memory that is not mapped"},
    {32, none, "a program sent a corrupt stream of commands"},
    {37, none, "the firmware received a method that it does not know"},
    {38, watch, "the firmware's watchdog expired"},
    {39, none, "a copy engine raised an exception"},
    {40, none, "a copy engine raised an exception"},
    {41, none, "a copy engine raised an exception"},
    {43, none, "the GPU stopped processing for a program"},
    {44, watch, "a fault while the GPU switched between contexts"},
    {45, none, "a program was removed from the GPU, after an error or because it was killed"},
    {46, reset, "the GPU stopped processing"},
    {48, reset, "a memory error that ECC could not correct"},
    {54, repair, "the GPU's auxiliary power is not connected"},
    {60, none, "a video processor raised an exception"},
    {62, reset, "a micro-controller of the GPU halted"},
    {63, watch, "a memory row will be remapped"},
    {64, reset, "a memory row could not be remapped"},
    {66, watch, "the driver accessed memory illegally"},
    {67, watch, "the driver accessed memory illegally"},
    {68, none, "a video decoder raised an exception"},
    {69, none, "a program used GPU classes incorrectly"},
    {70, none, "a copy engine raised an exception"},
    {71, none, "a copy engine raised an exception"},
    {72, none, "a copy engine raised an exception"},
    {74, reset, "an NVLink failed"},
    {79, reboot, "the GPU has fallen off the bus"},
    {80, none, "corrupt data was sent to the GPU"},
    {92, watch, "many memory errors corrected by ECC"},
    {93, watch, "the GPU's own storage is worn out"},
    {94, watch, "a contained memory error: it killed one program"},
    {95, reset, "an uncontained memory error"},
    {106, none, "a test message"},
    {107, none, "a test message"},
    {109, reset, "a context switch timed out"},
    {110, reset, "a security fault"},
    {119, reset, "the GPU's system processor (GSP) did not answer"},
    {120, reset, "the GPU's system processor (GSP) failed"},
    {121, watch, "a corrected error on the link to the CPU (C2C)"},
    {126, none, "a copy engine raised an exception"},
    {136, reset, "an NVLink could not be trained"},
    {137, watch, "an NVLink access that is not allowed, often by a program on another GPU"},
    {140, reset, "a memory error that the GPU did not recover from"},
    {141, watch, "an error in CUDA's fast path"},
    {143, reset, "the GPU could not be initialized"},
    {144, by_line, "an NVLink error (SAW)"},
    {145, by_line, "an NVLink error (RLW)"},
    {146, by_line, "an NVLink error (TLW)"},
    {147, by_line, "an NVLink error (TREX)"},
    {148, by_line, "an NVLink error (NVLPW)"},
    {149, by_line, "an NVLink error (NETIR)"},
    {150, by_line, "an NVLink error (MSE)"},
    {151, reboot, "a key rotation failed"},
    {154, by_line, "the driver's recovery advice changed"},
    {155, reset, "a software-defined NVLink error"},
    {156, reset, "a GPU resource will be retired"},
    {157, watch, "a GPU resource could not be retired"},
    {158, reset, "the GPU did not respond in time"},
    {160, watch, "a memory channel was retired"},
    {161, watch, "a memory channel could not be retired"},
    {167, reset, "PCIe did not respond in time"},
    {168, reboot, "errors in protected memory: the GPU now has less of it"},
    {171, reset, "a DRAM error that ECC could not correct"},
    {172, reset, "an SRAM error that ECC could not correct"},
};

/// The text between two marks, starting at `from`; `from` is moved past it.
std::string_view between(std::string_view line, std::string_view left, std::string_view right,
                         std::size_t& from) {
  const auto begin = line.find(left, from);
  if (begin == std::string_view::npos) return {};
  const auto end = line.find(right, begin + left.size());
  if (end == std::string_view::npos) return {};
  from = end + right.size();
  return line.substr(begin + left.size(), end - begin - left.size());
}

std::string without_prefix(std::string_view bus_id) {
  constexpr std::string_view kPrefix = "PCI:";
  if (bus_id.starts_with(kPrefix)) bus_id.remove_prefix(kPrefix.size());
  return std::string(bus_id);
}

/// "NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.", "NVRM: GPU at PCI:0000:18:00: ..."
std::optional<GpuEvent> fallen_off(std::string_view line) {
  if (line.find("fallen off the bus") == std::string_view::npos) return std::nullopt;
  for (const auto& word : text::split(line, ' ')) {
    auto bus_id = without_prefix(word);
    while (bus_id.ends_with(':')) bus_id.pop_back();
    const bool is_one = std::ranges::count(bus_id, ':') >= 1 &&
                        bus_id.find_first_not_of("0123456789abcdefABCDEF:.") == std::string::npos;
    if (is_one) return GpuEvent{GpuEvent::Kind::xid, 79, bus_id, "GPU has fallen off the bus"};
  }
  return std::nullopt;
}

/// "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
XidAction advice(std::string_view text) {
  const auto to = text.rfind("to 0x");
  if (to == std::string_view::npos) return watch;
  const auto now = text.substr(to);
  if (now.find("None") != std::string_view::npos) return none;
  return now.find("Reboot") != std::string_view::npos ? reboot : reset;
}

}  // namespace

std::span<const Xid> xids() {
  return kXids;
}

const Xid* find_xid(unsigned code) {
  const auto* found = std::ranges::lower_bound(kXids, code, {}, &Xid::code);
  return found != std::end(kXids) && found->code == code ? found : nullptr;
}

std::optional<GpuEvent> parse_gpu_event(std::string_view line) {
  // "NVRM: Xid (PCI:0000:05:00): 79, pid=..., text", "nvidia-nvswitch0: SXid (PCI:0000:00:00.0): 20034,
  // Fatal, text"
  std::size_t at = 0;
  const auto bus_id = between(line, "Xid (", ")", at);
  if (bus_id.empty()) return fallen_off(line);
  GpuEvent event{GpuEvent::Kind::xid, 0, without_prefix(bus_id), ""};
  if (line.find("SXid (") != std::string_view::npos) event.kind = GpuEvent::Kind::sxid;
  const auto rest = line.substr(at);
  const auto digit = rest.find_first_of("0123456789");
  if (digit == std::string_view::npos) return std::nullopt;
  const auto* begin = rest.data() + digit;
  const auto [end, error] = std::from_chars(begin, rest.data() + rest.size(), event.code);
  if (error != std::errc()) return std::nullopt;
  auto text = rest.substr(static_cast<std::size_t>(end - rest.data()));
  if (text.starts_with(',')) text.remove_prefix(1);
  event.text = text::trim(text);
  return event;
}

XidAction action_of(const GpuEvent& event) {
  // "Nonfatal" and "Non-fatal" are written in lower case after the first letter.
  const bool fatal = event.text.find("Fatal") != std::string::npos;
  if (event.kind == GpuEvent::Kind::sxid) return fatal ? reset : watch;
  const auto* known = find_xid(event.code);
  if (known == nullptr) return watch;
  constexpr unsigned kAdvice = 154;
  if (event.code == kAdvice) return advice(event.text);
  if (known->action == by_line) return fatal ? reset : watch;
  return known->action;
}

}  // namespace nlaunch::preflight
