#include "evidence/readers/ras.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/json.h"
#include "base/text.h"

namespace nlaunch::evidence {
namespace {

using nlohmann::json;

/// 2.28.7 and 2.28.9 omit the comma before the status of a missing rank.
std::string with_commas(std::string_view text) {
  static const std::regex gap(R"((\"nvml_dev\": -?[0-9]+)(\s*\n\s*\"status\"))");
  return std::regex_replace(std::string(text), gap, "$1,$2");
}

std::string status_of(const json& status) {
  if (status.value("abort_flag", false)) return "ABORT";
  if (status.value("finalize_called", false) || status.value("destroy_flag", false)) return "FINALIZE";
  return status.value("init_state", 0) == 0 ? "RUNNING" : "INIT";
}

bool is_error(int result) {
  constexpr int kInProgress = 7;  // ncclInProgress of nccl.h
  return result != 0 && result != kInProgress;
}

RasRank rank_from(const json& object) {
  RasRank rank;
  rank.rank = object.value("rank", -1);
  rank.pid = std::max(0, object.value("pid", 0));
  rank.address = object.value("host", "");
  const auto status = object.value("status", json::object());
  rank.status = status_of(status);
  rank.failed = is_error(status.value("init_state", 0)) || is_error(status.value("async_error", 0));
  const auto counts = object.value("collective_counts", json::object());
  for (const auto& [name, count] : counts.items()) rank.launched[name] = count.get<std::int64_t>();
  return rank;
}

/// Without a flag, its process answered, and does not know the communicator.
RasRank missing_from(const json& object) {
  auto rank = rank_from(object);
  const auto status = object.value("status", json::object());
  rank.dead = status.value("considered_dead", false);
  rank.silent = status.value("unresponsive", false);
  rank.status = rank.dead || rank.silent ? "" : "NOCOMM";
  return rank;
}

RasReport report_from(const json& object) {
  RasReport report;
  report.version = object.value("nccl_version", "");
  for (const auto& one : object.value("communicators", json::array())) {
    RasCommunicator communicator{one.value("hash", ""), one.value("size", 0), {}, {}};
    for (const auto& rank : one.value("ranks", json::array())) communicator.ranks.push_back(rank_from(rank));
    for (const auto& rank : one.value("missing_ranks", json::array()))
      communicator.ranks.push_back(missing_from(rank));
    report.communicators.push_back(std::move(communicator));
  }
  return report;
}

/// Text, line by line. The meaning of a line depends on the headings before it. The patterns limit how many
/// digits a number has: a line with a larger one is not from NCCL, and is skipped.
class TextReader {
 public:
  RasReport read(std::string_view text) {
    constexpr std::size_t kLongest = 4096;  // NCCL's limit is 1024; std::regex recurses deeply on long lines
    for (const auto& line : text::split(text, '\n')) {
      if (line.size() < kLongest) read_line(line);
    }
    for (auto& communicator : report_.communicators) {  // those without data are in no count
      if (communicator.size > 0)
        communicator.size += static_cast<int>(std::ranges::count(communicator.ranks, true, &RasRank::silent));
    }
    return std::move(report_);
  }

 private:
  enum class Section { none, silent, dead, counts, status, error };

  void read_line(const std::string& line) {
    static const std::regex version(R"(NCCL version (\S+) .*)");
    static const std::regex communicator(R"(#\d+-\d+ \(([0-9a-f]+)\) (\w+))");
    static const std::regex counts(R"(  Communicator ranks have different (\w+) operation counts)");
    std::smatch match;
    if (std::regex_match(line, match, version)) {
      report_.version = match[1];
    } else if (std::regex_match(line, match, communicator)) {
      current_ = &find(match[1]);
      section_ = match[2] == "INCOMPLETE" ? Section::silent : Section::error;
    } else if (line == "INCOMPLETE" || line == "DEAD") {
      current_ = nullptr;
      section_ = line == "DEAD" ? Section::dead : Section::silent;
    } else if (std::regex_match(line, match, counts)) {
      section_ = Section::counts;
      operation_ = match[1];
      counted_ = 0;
    } else if (line == "  Communicator ranks have different status") {
      section_ = Section::status;
    } else if (line.starts_with("  ")) {
      detail(line);
    }
  }

  void detail(const std::string& line) {
    static const std::regex process(R"(  Process (\d{1,9}) on node (\S+) managing GPUs? .*)");
    static const std::regex several(
        R"(  (\d{1,9}) ranks have (?:launched up to operation (\d{1,18})|(not) launched any operations))");
    static const std::regex statuses(R"(  \d+ ranks have status (\w+))");
    static const std::regex one(
        R"(  Rank (\d{1,9})(?: has launched up to operation (\d{1,18})| has (not) launched any operations| has status (\w+)| reported [^-]*)? -- (?:GPU .* managed by process (\d{1,9}) on node (\S+)|\[process information not found\]))");
    std::smatch match;
    if (std::regex_match(line, match, process)) {
      report_.processes.push_back({-1,
                                   std::stoi(match[1]),
                                   match[2],
                                   {},
                                   "",
                                   section_ == Section::dead,
                                   section_ != Section::dead,
                                   false});
    } else if (current_ != nullptr && std::regex_match(line, match, several)) {
      // The most frequent number comes first.
      value_ = match[3].matched ? 0 : std::stoll(match[2]);
      count(std::stoi(match[1]));
      current_->usual.try_emplace(operation_, value_);
    } else if (std::regex_match(line, match, statuses)) {
      status_ = match[1];
    } else if (current_ != nullptr && std::regex_match(line, match, one)) {
      add_rank(match);
    }
  }

  void add_rank(const std::smatch& match) {
    auto& rank = rank_of(std::stoi(match[1]));
    if (match[5].matched) {
      rank.pid = std::stoi(match[5]);
      rank.address = match[6];
    }
    if (section_ == Section::silent) rank.silent = true;
    if (section_ == Section::error) rank.failed = true;
    if (section_ == Section::status) rank.status = match[4].matched ? match[4].str() : status_;
    if (section_ != Section::counts) return;
    const bool is_alone = match[2].matched || match[3].matched;  // else one of those counted above
    if (is_alone) count(1);
    rank.launched[operation_] = match[2].matched ? std::stoll(match[2]) : match[3].matched ? 0 : value_;
  }

  /// Ranks of the communicator with a number of this operation: all together are its size.
  void count(int ranks) {
    counted_ += ranks;
    current_->size = std::max(current_->size, counted_);
  }

  RasCommunicator& find(const std::string& hash) {
    for (auto& communicator : report_.communicators) {
      if (communicator.hash == hash) return communicator;
    }
    return report_.communicators.emplace_back(RasCommunicator{hash, 0, {}, {}});
  }

  RasRank& rank_of(int number) {
    for (auto& rank : current_->ranks) {
      if (rank.rank == number) return rank;
    }
    return current_->ranks.emplace_back(RasRank{.rank = number, .address = "", .launched = {}, .status = ""});
  }

  RasReport report_;
  RasCommunicator* current_ = nullptr;
  Section section_ = Section::none;
  std::string operation_;
  std::string status_;
  std::int64_t value_ = 0;
  int counted_ = 0;
};

}  // namespace

Result<RasReport> read_ras(std::string_view text) {
  if (text::trim(text).starts_with('{')) {
    auto object = parse_json(text);
    if (object.is_discarded()) object = parse_json(with_commas(text));
    if (!object.is_object()) return failure("evidence.ras", "NCCL's RAS answered with invalid JSON");
    try {
      return report_from(object);
    } catch (const json::exception& error) {
      return failure("evidence.ras", "unexpected answer from NCCL's RAS: {}", error.what());
    }
  }
  if (text.find("NCCL version") == std::string_view::npos)
    return failure("evidence.ras", "unexpected answer from NCCL's RAS");
  return TextReader().read(text);
}

}  // namespace nlaunch::evidence
