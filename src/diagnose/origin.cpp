#include "diagnose/origin.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/text.h"

namespace nlaunch::diagnose {
namespace {

struct Part {
  std::string_view name;
  std::string Origin::*field;
};
constexpr std::array<Part, 9> kParts{{{"rank", &Origin::rank},
                                      {"local_rank", &Origin::local_rank},
                                      {"task", &Origin::task},
                                      {"host", &Origin::host},
                                      {"pid", &Origin::pid},
                                      {"device", &Origin::device},
                                      {"actor", &Origin::actor},
                                      {"process", &Origin::process},
                                      {"peer", &Origin::peer}}};

/// One prefix of a line, with the parts that its groups give.
struct Prefix {
  std::string_view pattern;
  std::array<std::string_view, 3> groups;
};
constexpr Prefix kPrefixes[] = {
    {R"(^\s*(\d{1,6}): )", {"rank"}},                            // srun --label
    {R"(^\[\d+,(\d+)\](?:<std(?:out|err)>)?:)", {"rank"}},       // mpirun --tag-output
    {R"(\[default(\d+)\]:)", {"local_rank"}},                    // torchrun --tee
    {R"(\[rank(\d+)\]:)", {"rank"}},                             // PyTorch's excepthook
    {R"(\[(?:PG [^\]]*? )?Rank (\d+)\])", {"rank"}},             // ProcessGroupNCCL
    {R"(\[[\w .-]*?[Rr]ank[ :=_]?(\d+)(?:/\d+)?\])", {"rank"}},  // loggers
    {R"(\(([A-Za-z_]\w*) (?:rank=\d+ )?pid=(\d+)(?:, ip=([\w.:-]+))?\))",
     {"actor", "pid", "host"}},                                                               // Ray, vLLM
    {R"(\((?:Vllm)?Worker\w* rank=(\d+) pid=(\d+)\))", {"rank", "pid"}},                      // vLLM
    {R"((?:^|[\s\]])([A-Za-z0-9][\w.-]*):(\d+):\d+ \[(\d+)\] )", {"host", "pid", "device"}},  // NCCL
    {R"(\[([A-Za-z][\w.-]*):(\d+):\d+(?::\d+)?\])", {"host", "pid"}},                         // UCX
};

std::string_view without_zeros(std::string_view digits) {
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  return digits;
}

}  // namespace

bool Origin::empty() const {
  return std::ranges::all_of(kParts, [&](const Part& part) { return (this->*part.field).empty(); });
}

void Origin::fill(const Origin& other) {
  for (const auto& part : kParts) {
    if ((this->*part.field).empty()) this->*part.field = other.*part.field;
  }
}

bool Origin::set(std::string_view part, std::string_view value) {
  for (const auto& known : kParts) {
    if (known.name != part) continue;
    this->*known.field = value;
    return true;
  }
  return false;
}

std::string Origin::str() const {
  std::vector<std::string> first;
  std::vector<std::string> more;
  const auto name = [&](const std::string& value, std::string_view prefix, std::string_view suffix = "") {
    if (value.empty()) return;
    (first.empty() ? first : more).push_back(fmt::format("{}{}{}", prefix, value, suffix));
  };
  name(process, "");
  name(rank, "rank ");
  if (rank.empty()) name(local_rank, "local rank ");
  name(task, "task ");
  name(actor, "");
  if (first.empty())
    name(host, "");
  else if (!host.empty())
    first.front() += fmt::format(" on {}", host);
  name(pid, "pid ");
  name(device, device.find_first_not_of("0123456789") == std::string::npos ? "GPU " : "");
  auto out = first.empty() ? std::string() : first.front();
  if (!more.empty()) out += fmt::format(" ({})", text::join(more, ", "));
  if (peer.empty()) return out;
  return out.empty() ? peer : fmt::format("{} (as seen by {})", peer, out);
}

std::string listed(const std::vector<std::string>& parts) {
  if (parts.empty()) return "";
  constexpr std::size_t kMost = 12;
  auto shown =
      std::vector(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(std::min(parts.size(), kMost)));
  if (parts.size() > kMost)
    return fmt::format("{} and {} more", text::join(shown, ", "), parts.size() - kMost);
  const auto last = shown.back();
  shown.pop_back();
  return shown.empty() ? last : fmt::format("{} and {}", text::join(shown, ", "), last);
}

std::string names_of(const std::vector<Origin>& whos) {
  if (whos.empty()) return "";
  if (whos.size() == 1) return whos.front().str();
  std::vector<std::string> ranks;
  std::vector<std::string> names;
  for (const auto& origin : whos) {
    const auto add = [](std::vector<std::string>& to, const std::string& name) {
      if (!name.empty() && std::ranges::find(to, name) == to.end()) to.push_back(name);
    };
    if (origin.peer.empty() && origin.process.empty()) add(ranks, origin.rank);
    add(names, origin.str());
  }
  if (ranks.size() < whos.size()) return listed(names);
  std::ranges::sort(ranks, {}, [](const std::string& rank) { return std::pair(rank.size(), rank); });
  return fmt::format("ranks {}", listed(ranks));
}

Origin origin_of(std::string_view beginning) {
  static const auto* const compiled = [] {
    auto* all = new std::vector<std::unique_ptr<re2::RE2>>;  // lives as long as the program
    for (const auto& prefix : kPrefixes) {
      all->push_back(std::make_unique<re2::RE2>(
          re2::StringPiece(prefix.pattern.data(), prefix.pattern.size()), re2::RE2::Latin1));
    }
    return all;
  }();
  Origin origin;
  for (std::size_t i = 0; i < std::size(kPrefixes); ++i) {
    re2::StringPiece rest(beginning.data(), beginning.size());
    std::array<re2::StringPiece, 4> groups;
    const auto& regex = *(*compiled)[i];
    const int count = 1 + regex.NumberOfCapturingGroups();
    while (regex.Match(rest, 0, rest.size(), re2::RE2::UNANCHORED, groups.data(), count)) {
      for (std::size_t g = 0; g < kPrefixes[i].groups.size() && !kPrefixes[i].groups[g].empty(); ++g) {
        const std::string_view value(groups[g + 1].data(), groups[g + 1].size());
        if (!value.empty())
          origin.set(kPrefixes[i].groups[g], kPrefixes[i].groups[g] == "rank" ? without_zeros(value) : value);
      }
      rest.remove_prefix(static_cast<std::size_t>(groups[0].data() + groups[0].size() - rest.data()));
      if (kPrefixes[i].pattern.starts_with('^')) break;
    }
  }
  return origin;
}

}  // namespace nlaunch::diagnose
