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
    "debug the program: CUDA_LAUNCH_BLOCKING=1, compute-sanitizer; no fault of the node unless one GPU alone "
    "has it";
constexpr std::string_view kReset = "drain the node; reset the GPU (nvidia-smi -r) or reboot";
constexpr std::string_view kReboot = "drain the node and reboot it; replace the GPU if it comes again";
constexpr Code kCodes[] = {
    {13, kProgram, "a kernel of the program accessed memory out of range, or executed what it must not",
     kDebug},
    {31, kProgram, "a kernel of the program accessed memory that is not mapped", kDebug},
    {32, kProgram, "the GPU was sent a command that is not valid", kDebug},
    {38, kHardware, "the driver's firmware failed", kReboot},
    {43, kProgram - 1, "the GPU ended a program that had failed", kDebug},
    {45, kFollows, "a program's channels were torn down: it had failed or was killed",
     "look for what came before"},
    {48, kHardware, "an error of two bits in the GPU's memory", kReset},
    {61, kHardware, "the GPU's microcontroller stopped", kReboot},
    {62, kHardware, "the GPU's microcontroller halted", kReboot},
    {63, kFollows, "a row of the GPU's memory will be remapped at the next reset",
     "reset the GPU when it is idle"},
    {64, kHardware, "a row of the GPU's memory could not be remapped", "drain the node; replace the GPU"},
    {68, kProgram, "the video decoder failed", kDebug},
    {69, kProgram, "the GPU was sent a command of a class that it does not take", kDebug},
    {74, kHardware, "NVLink failed", "drain the node; check the NVLinks, bridges and NVSwitches"},
    {79, kHardware, "the GPU has fallen off the bus", kReboot},
    {92, kFollows, "many errors of one bit in the GPU's memory", "watch the GPU"},
    {94, kHardware, "an uncorrectable memory error that was contained to one program", kReset},
    {95, kHardware, "an uncorrectable memory error that was not contained", kReset},
    {109, kHardware - 1, "a switch between contexts timed out", kReset},
    {110, kHardware, "a security fault", kReboot},
    {119, kHardware, "the GPU's system processor (GSP) did not answer", kReboot},
    {120, kHardware, "the GPU's system processor (GSP) failed", kReboot},
    {121, kHardware - 1, "a chip-to-chip link (C2C) had an error", kReset},
    {123, kHardware, "the GPU's power management failed", kReboot},
    {136, kHardware, "a link could not be trained", kReset},
    {137, kProgram, "an access over NVLink was not allowed: most often a program's, of memory that was freed",
     kDebug},
    {140, kHardware, "a memory error that could not be recovered from", kReset},
    {143, kHardware, "the GPU did not come up", kReboot},
    {144, kHardware, "NVLink: a fault of the SAW", kReset},
    {145, kHardware, "NVLink: a fault of the RLW", kReset},
    {146, kHardware, "NVLink: a fault of the TLW", kReset},
    {147, kHardware, "NVLink: a fault of the TREX", kReset},
    {148, kHardware, "NVLink: a fault of the NVLPW", kReset},
    {149, kHardware, "NVLink: a fault of the link's network interface", kReset},
    {150, kHardware, "NVLink: a fault of the MSE", kReset},
    {154, kFollows, "the GPU asks for an action: the line says which", "do what the line says"},
};

const Code& meaning_of(int number) {
  static constexpr Code kUnknown{0, kHardware - 10, "the driver reported a fault of the GPU",
                                 "docs.nvidia.com/deploy/xid-errors tells what the code means"};
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
    // Of a program's faults the line that names the process tells most.
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
    .title = "what the NVIDIA driver reported, by GPU",
    .make = make_analysis<Xids>,
}};

}  // namespace
}  // namespace nlaunch::diagnose
