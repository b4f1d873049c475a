#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "diagnose/analysis.h"

/// What the NVIDIA driver reported in the kernel log, by GPU.
namespace nlaunch::diagnose {
namespace {

constexpr std::string_view kXid = "xid";
constexpr int kHardware = 90;  // explains everything on that GPU
constexpr int kProgram = 63;   // the driver reports what the program did
constexpr int kFollows = 20;   // comes with another one

/// What a code means. From docs.nvidia.com/deploy/xid-errors and leptonai/gpud
/// components/accelerator/nvidia/xid.
struct Code {
  int number;
  int weight;
  std::string_view meaning;
  std::string_view fix;
};
constexpr std::string_view kDebug =
    "debug the program: CUDA_LAUNCH_BLOCKING=1, compute-sanitizer; not a fault of the node unless only one "
    "GPU has it";
constexpr std::string_view kReset = "drain the node; reset the GPU (nvidia-smi -r) or reboot";
constexpr std::string_view kReboot = "drain the node and reboot it; replace the GPU if the fault returns";
constexpr Code kCodes[] = {
    {13, kProgram, "a kernel of the program accessed memory out of range, or executed an illegal instruction",
     kDebug},
    {31, kProgram, "a kernel of the program accessed unmapped memory", kDebug},
    {32, kProgram, "the GPU received an invalid command", kDebug},
    {38, kHardware, "the driver's firmware failed", kReboot},
    {43, kProgram - 1, "the GPU stopped a program that had failed", kDebug},
    {45, kFollows, "a program's channels were torn down: it had failed or was killed",
     "look for an earlier error"},
    {48, kHardware, "a double-bit error in the GPU's memory", kReset},
    {61, kHardware, "the GPU's microcontroller stopped", kReboot},
    {62, kHardware, "the GPU's microcontroller halted", kReboot},
    {63, kFollows, "a row of the GPU's memory will be remapped at the next reset",
     "reset the GPU when it is idle"},
    {64, kHardware, "a row of the GPU's memory could not be remapped", "drain the node; replace the GPU"},
    {68, kProgram, "the video decoder failed", kDebug},
    {69, kProgram, "the GPU received a command of a class that it does not support", kDebug},
    {74, kHardware, "NVLink failed", "drain the node; check the NVLinks, bridges and NVSwitches"},
    {79, kHardware, "the GPU has fallen off the bus", kReboot},
    {92, kFollows, "many single-bit errors in the GPU's memory", "monitor the GPU"},
    {94, kHardware, "an uncorrectable memory error that was contained in one program", kReset},
    {95, kHardware, "an uncorrectable memory error that was not contained", kReset},
    {109, kHardware - 1, "a context switch timed out", kReset},
    {110, kHardware, "a security fault", kReboot},
    {119, kHardware, "the GPU's system processor (GSP) did not answer", kReboot},
    {120, kHardware, "the GPU's system processor (GSP) failed", kReboot},
    {121, kHardware - 1, "a chip-to-chip link (C2C) had an error", kReset},
    {123, kHardware, "the GPU's power management failed", kReboot},
    {136, kHardware, "a link could not be trained", kReset},
    {137, kProgram, "an NVLink access was not allowed: usually a program that accessed freed memory", kDebug},
    {140, kHardware, "an unrecoverable memory error", kReset},
    {143, kHardware, "the GPU did not initialize", kReboot},
    {144, kHardware, "NVLink: SAW fault", kReset},
    {145, kHardware, "NVLink: RLW fault", kReset},
    {146, kHardware, "NVLink: TLW fault", kReset},
    {147, kHardware, "NVLink: TREX fault", kReset},
    {148, kHardware, "NVLink: NVLPW fault", kReset},
    {149, kHardware, "NVLink: network interface fault of the link", kReset},
    {150, kHardware, "NVLink: MSE fault", kReset},
    {154, kFollows, "the GPU requests an action: the line says which", "do what the line says"},
};

const Code& meaning_of(int number) {
  static constexpr Code kUnknown{0, kHardware - 10, "the driver reported a GPU fault",
                                 "see docs.nvidia.com/deploy/xid-errors for what the code means"};
  const auto* const found = std::ranges::find(kCodes, number, &Code::number);
  return found == std::end(kCodes) ? kUnknown : *found;
}

class Xids : public Analysis {
 public:
  void on_match(const Match& match) override {
    if (match.signature->id != "kernel.xid") return;
    int number = 0;
    const auto digits = match["code"];
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    const auto device = std::string(match["pci"]);
    constexpr std::size_t kMostDevices = 1024;
    if (!devices_.contains(device) && devices_.size() >= kMostDevices) return;
    auto& seen = devices_[device];
    auto pid = match["xpid"];
    if (pid.find_first_not_of("0123456789") != std::string_view::npos) pid = {};
    if (!pid.empty()) seen.pid = pid;
    ++seen.count;
    if (std::ranges::find(seen.numbers, number) == seen.numbers.end()) seen.numbers.push_back(number);
    const auto& code = meaning_of(number);
    // For a program's faults, the line that names the process says most.
    const bool better =
        !seen.worst || code.weight > seen.weight ||
        (code.weight >= kProgram - 1 && seen.weight == kProgram && !seen.named && !pid.empty());
    if (!better) return;
    seen.weight = std::max(seen.weight, code.weight);
    seen.named = !pid.empty();
    auto finding = finding_at(match, "gpu-xid", kXid, seen.weight);
    finding.why = fmt::format("Xid {}: {}", number, code.meaning);
    finding.fix = code.fix;
    finding.source = "docs.nvidia.com/deploy/xid-errors";
    seen.worst = std::move(finding);
  }

  [[nodiscard]] std::vector<Finding> findings(const World& /*world*/) const override {
    std::vector<Finding> all;
    for (const auto& [device, seen] : devices_) {
      auto finding = *seen.worst;
      Origin origin;
      origin.device = fmt::format("PCI:{}", device);
      origin.pid = seen.pid;
      finding.culprits = {origin};
      finding.count = seen.count;
      if (seen.numbers.size() > 1) {
        std::vector<std::string> numbers;
        for (const int number : seen.numbers) numbers.push_back(std::to_string(number));
        finding.why += fmt::format(" (seen on this GPU: Xid {})", listed(numbers));
      }
      all.push_back(std::move(finding));
    }
    return all;
  }

 private:
  struct Seen {
    std::optional<Finding> worst;
    int weight = 0;
    bool named = false;
    std::string pid;
    std::vector<int> numbers;
    std::uint64_t count = 0;
  };
  std::map<std::string, Seen> devices_;
};

const Registered<AnalysisEntry> xid_analysis{{
    .order = 30,
    .name = "xid",
    .title = "faults that the NVIDIA driver reported, by GPU",
    .make = make_analysis<Xids>,
}};

}  // namespace
}  // namespace nlaunch::diagnose
