#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/run_report.h"

/// What the text and the page of a run's report both say.
namespace nlaunch::report {

/// It finished, or nothing has ended it so far.
bool is_well(const RunReport& report);
/// Those in which the run spent any time.
std::vector<record::Phase> phases_of(const record::Timeline& timeline);
/// Training steps that count: steps that were done again count once.
std::uint64_t counted_steps(const record::Timeline& timeline);
/// "83.1 %; 95.0 % without the queue; 97.2 % in the last hour"
std::string ettr_text(const record::Timeline& timeline);
/// "14.3, of which 12.2 productive (85.3 %)"; empty without GPUs.
std::string gpu_hours_text(const record::Timeline& timeline);
/// "0.023", "12.4"
std::string hours_text(double hours);
/// "restart 2: engine.1 exited with code 1 after 40.2s: a GPU had no memory left", "walltime of job 123",
/// "stall: no progress for 19 s", "first start"
std::string cause_line(const record::Cause& cause);
/// {"loading 40.0 s", "lost 12.0 s"}: where it cost at least 1 % of its time, the most expensive first.
std::vector<std::string> parts_of(const record::Cost& cost);

/// {"what", "why", "fix", "next"} of a run that failed, each with its text; those that are known.
std::vector<std::pair<std::string, std::string>> cause_of_end(const RunReport& report);

/// At most so many: with more, those that started most often.
std::vector<const record::ProcessRow*> processes_that_matter(const record::Timeline& timeline,
                                                             std::size_t most);
/// Of its first start: "6.4 s", "never"; empty where it has no check.
std::string ready_text(const record::ProcessRow& row);
std::string starts_text(const record::ProcessRow& row);
std::string end_text(const record::ProcessRow& row);
/// "starting", "up", "stale"
std::string_view state_name(record::ProcessSpan::State state);

}  // namespace nlaunch::report
